//! Which names this server answers to. A page of a foreign site that has its own name resolve to our address (DNS
//! rebinding) still sends its own name.

use axum::http::{HeaderMap, Uri, header};

use crate::problem::{Kind, Problem};

/// The names beyond loopback, in lower case: `bridge.example.org`, or with a port that must then match.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<String>);

/// Whether the peer is one of our proxies, which may say under which name it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Direct,
    Proxy,
}

impl Hosts {
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    /// Refuses a request that names no host, two, or one that is not ours.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap, via: Via) -> Result<(), Problem> {
        if via == Via::Proxy && headers.contains_key("x-forwarded-host") {
            return self.allow(single(headers, "x-forwarded-host")?);
        }
        let in_target = uri.authority().map(|authority| authority.as_str().as_bytes());
        let in_header = headers.contains_key(header::HOST);
        match in_target {
            // The target of HTTP/2, or the absolute form of HTTP/1. A `Host` beside it must be ours as well: nobody
            // downstream may see another name than the one that was checked.
            Some(authority) if in_header => {
                let host = single(headers, header::HOST.as_str())?;
                if !host.eq_ignore_ascii_case(authority) {
                    return Err(refused("the request names two hosts that differ; send one"));
                }
                self.allow(authority)
            }
            Some(authority) => self.allow(authority),
            None => self.allow(single(headers, header::HOST.as_str())?),
        }
    }

    fn allow(&self, host: &[u8]) -> Result<(), Problem> {
        let allowed = std::str::from_utf8(host).is_ok_and(|host| {
            split_port(host).is_some_and(|(name, _)| is_loopback(name) || self.lists(host) || self.lists(name))
        });
        if allowed {
            return Ok(());
        }
        let shown = host.escape_ascii();
        Err(refused(format!(
            "host `{shown}` is not allowed here; use `localhost`, or add the name to `hosts` in the configuration"
        )))
    }

    fn lists(&self, name: &str) -> bool {
        self.0.iter().any(|listed| listed.eq_ignore_ascii_case(name))
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a [u8], Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value.as_bytes()),
        (None, _) => Err(refused(format!("the request names no host; send `{name}`"))),
        (Some(_), Some(_)) => Err(refused(format!("the request has more than one `{name}`; send one"))),
    }
}

fn refused(message: impl Into<String>) -> Problem {
    Problem::new(Kind::Forbidden, message)
}

pub(super) fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

/// A name and its port, if it has the shape of `name`, `name:port`, `[v6]` or `[v6]:port`.
pub(super) fn split_port(host: &str) -> Option<(&str, Option<u16>)> {
    let end_of_name = if host.starts_with('[') { host.find(']')? + 1 } else { host.find(':').unwrap_or(host.len()) };
    let (name, rest) = host.split_at(end_of_name);
    if name.is_empty() {
        return None;
    }
    match rest.strip_prefix(':') {
        Some(port) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => {
            Some((name, Some(port.parse().ok()?)))
        }
        None if rest.is_empty() => Some((name, None)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn verdict(target: &str, hosts: &[&str], forwarded: Option<&str>, via: Via) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_bytes(host.as_bytes()).unwrap());
        }
        if let Some(forwarded) = forwarded {
            headers.insert("x-forwarded-host", forwarded.parse().unwrap());
        }
        let ours = Hosts::new(["Bridge.example".to_owned(), "port.example:8443".to_owned()]);
        ours.check(&target.parse().unwrap(), &headers, via).is_ok()
    }

    #[test]
    fn s2_only_our_own_names_pass() {
        for (host, passes) in [
            ("localhost", true),
            ("LOCALHOST:11434", true),
            ("127.0.0.1:1", true),
            ("[::1]:11434", true),
            ("bridge.example", true),
            ("BRIDGE.example:443", true),
            ("port.example:8443", true),
            ("port.example", false),
            ("port.example:1", false),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("evil-localhost", false),
            ("localhost.", false),
            ("localhost:", false),
            ("localhost:x", false),
            ("localhost:99999", false),
            ("localhost:80:80", false),
            ("user@localhost", false),
            ("127.0.0.1.evil.example", false),
            ("127.1", false),
            ("0.0.0.0", false),
            ("::1", false),
            ("[::1", false),
            ("[::1]x", false),
            ("", false),
            (" ", false),
            ("localhost\u{e9}", false),
        ] {
            assert_eq!(verdict("/", &[host], None, Via::Direct), passes, "{host}");
        }
    }

    #[test]
    fn s2_absent_duplicate_and_differing_hosts_are_refused() {
        for (target, hosts, passes) in [
            ("/", &[][..], false),
            ("/", &["localhost", "localhost"], false),
            ("http://localhost:1/", &[], true),
            ("http://localhost:1/", &["localhost:1"], true),
            ("http://localhost:1/", &["evil.example"], false),
            ("http://evil.example/", &["localhost"], false),
            ("http://evil.example/", &["evil.example"], false),
        ] {
            assert_eq!(verdict(target, hosts, None, Via::Direct), passes, "{target} {hosts:?}");
        }
    }

    #[test]
    fn s2_a_forwarded_host_counts_only_from_a_configured_proxy() {
        assert!(!verdict("/", &["evil.example"], Some("localhost"), Via::Direct));
        assert!(verdict("/", &["localhost"], Some("evil.example"), Via::Direct));
        assert!(verdict("/", &["upstream"], Some("bridge.example"), Via::Proxy));
        assert!(!verdict("/", &["localhost"], Some("evil.example"), Via::Proxy));
    }

    proptest! {
        #[test]
        fn s31_no_host_panics_and_none_but_ours_passes(host in "[\\[\\]:@.a-z0-9%/ -]{0,24}") {
            let passes = Hosts::default().allow(host.as_bytes()).is_ok();
            let ours = ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| {
                host.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            });
            prop_assert!(!passes || ours);
        }
    }
}
