//! Where the gateway is, and what opens its door.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use tokio_tungstenite::tungstenite::http::{HeaderValue, Request, Uri, header};

/// The WebSocket of a gateway: `ws[s]://HOST[:PORT][/PATH][?QUERY]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    uri: Uri,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Plain,
    Tls,
}

impl Address {
    /// The ACP API of whoever listens there.
    pub fn at(listener: SocketAddr) -> Self {
        let uri = Uri::builder().scheme("ws").authority(listener.to_string()).path_and_query("/acp").build();
        Self { uri: uri.expect("made of sound parts") }
    }

    pub fn scheme(&self) -> Scheme {
        if self.uri.scheme_str() == Some("wss") { Scheme::Tls } else { Scheme::Plain }
    }

    /// Whether it names this machine by its loopback interface.
    pub fn is_of_this_machine(&self) -> bool {
        let host = self.host();
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// The name or the IP address, without brackets.
    pub(super) fn host(&self) -> &str {
        self.uri.host().unwrap_or_default().trim_matches(['[', ']'])
    }

    pub(super) fn port(&self) -> u16 {
        let usual = match self.scheme() {
            Scheme::Plain => 80,
            Scheme::Tls => 443,
        };
        self.uri.port_u16().unwrap_or(usual)
    }

    /// What stands in `Host`.
    pub fn authority(&self) -> &str {
        self.uri.authority().map_or("", |authority| authority.as_str())
    }

    /// The same state, for those who know their sessions themselves.
    pub(super) fn without_session(&self) -> Self {
        let kept: Vec<_> =
            self.uri.query().unwrap_or_default().split('&').filter(|pair| !names_session(pair)).collect();
        let query =
            if kept.iter().all(|pair| pair.is_empty()) { String::new() } else { format!("?{}", kept.join("&")) };
        let scheme = self.uri.scheme_str().unwrap_or("ws");
        let text = format!("{scheme}://{}{}{query}", self.authority(), self.uri.path());
        text.parse().map_or_else(|_| self.clone(), |uri| Self { uri })
    }

    pub(super) fn request(&self, credential: &Credential) -> Request<()> {
        let key = tokio_tungstenite::tungstenite::handshake::client::generate_key();
        let mut request = Request::new(());
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        let mut set = |name, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        set(header::HOST, self.authority());
        set(header::CONNECTION, "Upgrade");
        set(header::UPGRADE, "websocket");
        set(header::SEC_WEBSOCKET_VERSION, "13");
        set(header::SEC_WEBSOCKET_KEY, &key);
        let mut bearer = credential.0.clone();
        bearer.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, bearer);
        request
    }
}

fn names_session(pair: &str) -> bool {
    pair.split('=').next() == Some("session")
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let example = "write it like `ws://127.0.0.1:11434/acp`";
        let uri: Uri = text.parse().map_err(|error| format!("not an address: {error}; {example}"))?;
        match uri.scheme_str() {
            Some("ws" | "wss") => {}
            _ => return Err(format!("the address does not begin with `ws://` or `wss://`; {example}")),
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("a key does not belong into an address; set `GEMBRIDGE_KEY` or use `--key-file`".to_owned());
        }
        let bare = uri.path() == "/" && uri.query().is_none() && !text.ends_with('/');
        let uri = if bare { format!("{text}/acp").parse().map_err(|_| example.to_owned())? } else { uri };
        Ok(Self { uri })
    }
}

/// What is sent in `Authorization`. Never shown.
#[derive(Clone)]
pub struct Credential(HeaderValue);

impl Credential {
    pub fn new(key: &str) -> Option<Self> {
        HeaderValue::from_str(&format!("Bearer {}", key.trim())).ok().filter(|_| !key.trim().is_empty()).map(Self)
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_means_the_acp_api() {
        for (typed, meant) in [
            ("ws://127.0.0.1:11434", "ws://127.0.0.1:11434/acp"),
            ("ws://localhost:4444/", "ws://localhost:4444/"),
            ("ws://[::1]:9/acp?limit=1", "ws://[::1]:9/acp?limit=1"),
            ("wss://localhost", "wss://localhost/acp"),
        ] {
            let address: Address = typed.parse().unwrap();
            assert_eq!(address.to_string(), meant);
            assert!(address.is_of_this_machine());
        }
    }

    #[test]
    fn f12_this_machine_is_its_loopback_interface_and_nothing_that_looks_like_it() {
        for (typed, host, port) in [
            ("ws://bridge.example.org", "bridge.example.org", 80),
            ("wss://localhost.evil.com", "localhost.evil.com", 443),
            ("ws://127.0.0.1.evil.com:9", "127.0.0.1.evil.com", 9),
            ("ws://0.0.0.0:9", "0.0.0.0", 9),
            ("ws://[::]:9", "::", 9),
        ] {
            let address: Address = typed.parse().unwrap();
            assert!(!address.is_of_this_machine(), "{typed}");
            assert_eq!((address.host(), address.port()), (host, port));
        }
    }

    #[test]
    fn an_address_can_do_without_its_session() {
        for (named, nameless) in [
            ("ws://[::1]:9/acp?session=x&limit=1", "ws://[::1]:9/acp?limit=1"),
            ("ws://127.0.0.1:9/acp?session=x", "ws://127.0.0.1:9/acp"),
            ("ws://127.0.0.1:9/", "ws://127.0.0.1:9/"),
            ("wss://bridge.example.org/acp?session=x", "wss://bridge.example.org/acp"),
        ] {
            let address: Address = named.parse().unwrap();
            assert_eq!(address.without_session().to_string(), nameless);
        }
    }

    #[test]
    fn what_cannot_be_reached_is_refused_with_the_way_out() {
        for (typed, said) in
            [("http://localhost", "ws://"), ("ws://user:key@localhost", "GEMBRIDGE_KEY"), ("", "not an address")]
        {
            let refused = typed.parse::<Address>().unwrap_err();
            assert!(refused.contains(said), "{typed}: {refused}");
        }
    }

    #[test]
    fn a_credential_shows_nothing() {
        assert_eq!(format!("{:?}", Credential::new("secret").unwrap()), "Credential");
        assert!(Credential::new(" \n").is_none());
    }
}
