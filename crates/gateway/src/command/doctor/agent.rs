//! The agent: its program, its version, what it runs on, its login, and whether it answers.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use gembridge_drivers::profile::{AgentConfig, Driver, LoginFound, Profile, Version};

use super::{Check, Probe};
use crate::agents::{self, Agent, Chosen};
use crate::command::Context;

/// What the Node.js agents ask for.
const OLDEST_NODE: Version = Version::new(20, 0, 0);

pub fn missing(sentence: &str) -> Check {
    let (what, way_out) = sentence.split_once("; ").unwrap_or((sentence, "see `gembridge agents`"));
    Check::fail("agent", what, way_out)
}

pub fn checks(agent: &Agent, context: &Context, probe: &dyn Probe) -> Vec<Check> {
    let mut checks = program(agent, context);
    checks.extend(login(agent, context));
    checks.push(handshake(agent, context, probe));
    checks
}

fn program(agent: &Agent, context: &Context) -> Vec<Check> {
    let (title, place) = (&agent.profile.title, agent.program.display());
    if agent.profile.command.own_binary {
        return vec![match &agent.chosen {
            Chosen::BuiltIn(lacking) => {
                Check::warn("agent", format!("{}; the built-in {title} answers", lacking.problem()), lacking.way_out())
            }
            Chosen::Named | Chosen::First => Check::ok("agent", format!("{title}, built in")),
        }];
    }
    if agent.profile.driver == Driver::A2a {
        return vec![Check::ok("agent", format!("{title} at {place}"))];
    }
    let node = needs_node(&agent.program).then(node_profile).flatten();
    let mut asked = vec![(agent.profile.clone(), agent.program.clone())];
    let node_found = node.as_ref().and_then(|node| {
        let found = agents::detect_all(std::slice::from_ref(node), &context.config).pop()?.found?;
        Some(found.program)
    });
    asked.extend(node.clone().zip(node_found.clone()));
    let versions = agents::versions(&asked, &context.config);
    let mut checks = vec![version(&agent.profile, versions[0], &format!("{title} at {place}"))];
    if node.is_some() {
        checks.push(node_version(node_found.as_deref(), versions.get(1).copied().flatten()));
    }
    checks
}

fn version(profile: &Profile, found: Option<Version>, what: &str) -> Check {
    let Some(found) = found else {
        return Check::warn(
            "agent",
            format!("{what} does not tell its version"),
            format!("run `{} --version` by hand", profile.command.names.first().map_or("agent", String::as_str)),
        );
    };
    let what = format!("{what}, version {found}");
    let (oldest, newest) = (profile.tested.iter().min(), profile.tested.iter().max());
    match (oldest, newest) {
        (Some(oldest), _) if found < *oldest => Check::warn(
            "agent",
            format!("{what}, older than the tested {oldest}"),
            format!("update it: {}", profile.install),
        ),
        (_, Some(newest)) if found > *newest => Check::warn(
            "agent",
            format!("{what}, newer than the tested {newest}"),
            "it should work; if it does not, go back to the tested version and tell us",
        ),
        _ => Check::ok("agent", what),
    }
}

fn node_version(program: Option<&Path>, found: Option<Version>) -> Check {
    match (program, found) {
        (None, _) => {
            Check::fail("node", "the agent runs on Node.js, which is not on PATH", "install Node.js 20 or newer")
        }
        (Some(program), None) => Check::warn(
            "node",
            format!("{} does not tell its version", program.display()),
            "run `node --version` by hand",
        ),
        (Some(_), Some(found)) if found < OLDEST_NODE => {
            Check::fail("node", format!("Node.js {found} is too old for the agent"), "install Node.js 20 or newer")
        }
        (Some(program), Some(found)) => Check::ok("node", format!("Node.js {found} at {}", program.display())),
    }
}

/// Whether a program is a script for Node.js, by its first line.
fn needs_node(program: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(program).and_then(|file| file.take(256).read_to_end(&mut start));
    let first_line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    read.is_ok() && first_line.starts_with(b"#!") && String::from_utf8_lossy(first_line).contains("node")
}

/// Node.js as something to be looked for and asked for its version, like an agent.
fn node_profile() -> Option<Profile> {
    let config = AgentConfig { command: Some("node".to_owned()), ..AgentConfig::default() };
    Profile::custom("node", &config, &[]).ok()
}

fn login(agent: &Agent, context: &Context) -> Option<Check> {
    if agent.profile.login.is_empty() {
        return None;
    }
    let found = agent.profile.find_login(&context.config.environment.to_map(), &|path| path.exists());
    Some(login_check(&agent.profile, found))
}

fn login_check(profile: &Profile, found: Option<LoginFound>) -> Check {
    match found {
        None => Check::warn("login", format!("no login of {} was found", profile.title), profile.login_hint.clone()),
        Some(found) => {
            let what = crate::command::login_told(&found.title, &found.source);
            match found.advice {
                Some(advice) => Check::warn("login", what, advice),
                None => Check::ok("login", what),
            }
        }
    }
}

fn handshake(agent: &Agent, context: &Context, probe: &dyn Probe) -> Check {
    match probe.initialize(agent, context) {
        Ok(greeting) => {
            let name = greeting.name.unwrap_or_else(|| agent.profile.title.clone());
            let version = greeting.version.map(|version| format!(" {version}")).unwrap_or_default();
            let asked = if agent.profile.driver == Driver::A2a { "the request for its card" } else { "`initialize`" };
            Check::ok("handshake", format!("{name}{version} answered {asked} in {} ms", greeting.took.as_millis()))
        }
        Err(failure) => {
            let (what, way_out) = match failure.message.split_once("; ") {
                Some((what, way_out)) => (what.to_owned(), way_out.to_owned()),
                None => (failure.message, format!("run it by hand: `{}`", agent.program.display())),
            };
            Check::fail("handshake", what, way_out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    fn profile(tested: &[Version]) -> Profile {
        let mut profile = node_profile().unwrap();
        profile.tested = tested.to_vec();
        profile
    }

    #[test]
    fn a_version_is_held_against_the_tested_ones() {
        let tested = profile(&[Version::new(0, 40, 1), Version::new(0, 61, 0)]);
        for (found, status, word) in [
            (Some(Version::new(0, 61, 0)), Status::Ok, "version 0.61.0"),
            (Some(Version::new(0, 50, 0)), Status::Ok, "version 0.50.0"),
            (Some(Version::new(0, 11, 3)), Status::Warn, "older than the tested 0.40.1"),
            (Some(Version::new(1, 0, 0)), Status::Warn, "newer than the tested 0.61.0"),
            (None, Status::Warn, "does not tell its version"),
        ] {
            let check = version(&tested, found, "X at /x");
            assert!(check.status == status && check.detail.contains(word), "{check:?}");
        }
        assert_eq!(version(&profile(&[]), Some(Version::new(9, 9, 9)), "X").status, Status::Ok);
    }

    #[test]
    fn an_old_or_missing_node_is_broken() {
        let node = Path::new("/usr/bin/node");
        assert_eq!(node_version(Some(node), Some(Version::new(20, 0, 0))).status, Status::Ok);
        assert_eq!(node_version(Some(node), Some(Version::new(18, 19, 0))).status, Status::Fail);
        assert_eq!(node_version(None, None).status, Status::Fail);
    }

    #[test]
    fn a_personal_login_comes_with_its_advice_and_none_with_the_way_to_one() {
        let gemini = Profile::builtin().unwrap().into_iter().find(|profile| profile.name == "gemini").unwrap();
        let of = |variables: &[(&str, &str)], files: &'static [&'static str]| {
            let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let found = gemini.find_login(&environment, &|path| files.iter().any(|file| path == Path::new(file)));
            login_check(&gemini, found)
        };
        let key = of(&[("HOME", "/h"), ("GEMINI_API_KEY", "canary")], &[]);
        assert!(key.status == Status::Ok && key.detail.contains("`GEMINI_API_KEY`"), "{key:?}");
        assert!(!format!("{key:?}").contains("canary"));
        let personal = of(&[("HOME", "/h")], &["/h/.gemini/oauth_creds.json"]);
        assert!(personal.status == Status::Warn && personal.fix.is_some(), "{personal:?}");
        let none = of(&[("HOME", "/h")], &[]);
        assert!(none.status == Status::Warn && none.fix.unwrap().contains("GEMINI_API_KEY"));
    }
}
