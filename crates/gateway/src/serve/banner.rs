//! What a person sees when the gateway starts: where it is, with which key, and a line to try.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use gembridge_api::keys::Key;

use crate::agents::{Agent, Chosen};
use crate::terminal::escape;

pub struct Banner<'a> {
    pub addresses: &'a [SocketAddr],
    pub agent: &'a Agent,
    pub key: Shown,
}

/// What is known of a key to try with.
pub enum Shown {
    /// Made just now, and told this once, to a terminal.
    New { key: Key, file: PathBuf },
    /// An earlier run made it, or this one, and no terminal reads what is printed.
    InFile(PathBuf),
    /// The operator's own token, as this variable has it or would have it.
    Token { variable: String, origin: String },
    /// Only whoever made the keys knows them.
    Elsewhere,
}

impl Banner<'_> {
    /// At most ten lines; the first is for programs too.
    pub fn text(&self) -> String {
        let url = self.addresses.first().map_or_else(String::new, |address| format!("http://{}", reachable(*address)));
        let mut out = String::new();
        let mut line = |name: &str, text: &str| {
            writeln!(out, "{name:<7} {text}").expect("writing to a String cannot fail");
        };
        line("gembridge", &format!("{} listens on {url}", env!("CARGO_PKG_VERSION")));
        for further in self.addresses.iter().skip(1).take(2) {
            line("", &format!("and on http://{}", reachable(*further)));
        }
        for open in self.addresses.iter().filter(|address| address.ip().is_unspecified()).take(2) {
            line("", &format!("and, for others, on {open}: every address of this machine"));
        }
        line("agent", &agent(self.agent));
        match &self.key {
            Shown::New { key, file } => {
                line("key", &format!("{} (shown this once; also in {})", key.expose(), file.display()));
            }
            Shown::InFile(file) => line("key", &format!("in {}", file.display())),
            Shown::Token { variable, origin } => line("key", &format!("`${variable}`, from {origin}")),
            Shown::Elsewhere => line("key", "one of `gembridge keys list`; `gembridge keys create NAME` makes another"),
        }
        line("chat", &self.page(&url));
        line("try", &self.curl(&url));
        line("docs", &format!("{url}/docs"));
        escape::text(&out).into_owned()
    }

    /// The page takes the key from behind the `#`, which a browser keeps to itself, and then hides it.
    fn page(&self, url: &str) -> String {
        match &self.key {
            Shown::New { key, .. } => format!("{url}/#key={}", key.expose()),
            Shown::InFile(_) | Shown::Token { .. } | Shown::Elsewhere => {
                format!("{url}/ in a browser; it asks for the key")
            }
        }
    }

    fn curl(&self, url: &str) -> String {
        let key = match &self.key {
            Shown::New { file, .. } | Shown::InFile(file) => format!("$(cat {})", quoted(file)),
            Shown::Token { variable, .. } => format!("${variable}"),
            Shown::Elsewhere => "$GEMBRIDGE_KEY".to_owned(),
        };
        let model = &self.agent.profile.name;
        format!(
            "curl {url}/v1/chat/completions -H \"Authorization: Bearer {key}\" -H 'Content-Type: application/json' \
             -d '{{\"model\":\"{model}\",\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}'"
        )
    }
}

/// An address that stands for all of them cannot be asked for.
fn reachable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let here = if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
    SocketAddr::new(here, address.port())
}

fn agent(agent: &Agent) -> String {
    let Agent { profile, chosen, .. } = agent;
    match chosen {
        Chosen::BuiltIn(lacking) => format!("{}, since {}; {}", profile.title, lacking.problem(), lacking.way_out()),
        Chosen::Named | Chosen::First => profile.title.clone(),
    }
}

/// For a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    if is_plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_all_is_shown_as_one_that_can_be_asked_for() {
        assert_eq!(reachable("0.0.0.0:80".parse().unwrap()).to_string(), "127.0.0.1:80");
        assert_eq!(reachable("[::]:80".parse().unwrap()).to_string(), "[::1]:80");
        assert_eq!(reachable("192.0.2.1:80".parse().unwrap()).to_string(), "192.0.2.1:80");
    }

    #[test]
    fn s16_a_path_cannot_break_out_of_the_command_line() {
        assert_eq!(quoted(Path::new("/home/me/key")), "/home/me/key");
        assert_eq!(quoted(Path::new("/a b/$(x)'y")), r"'/a b/$(x)'\''y'");
    }
}
