//! The agent card: which version a server speaks, where, and what it takes.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::model::{AgentFacts, Opaque, PromptAbilities};
use hyper::Uri;
use serde::Deserialize;

use super::error::Trouble;
use super::http::Server;

const WELL_KNOWN: &str = "/.well-known/agent-card.json";
/// Where servers before 0.3 had it, and some still do.
const OLD_WELL_KNOWN: &str = "/.well-known/agent.json";

/// The version of a server's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    V03,
    V10,
}

/// How answers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Stream,
    /// In one piece, when the task needs its client.
    Whole,
}

#[derive(Clone, Debug)]
pub(super) struct Card {
    pub protocol: Protocol,
    /// Where JSON-RPC is served.
    pub path: String,
    pub delivery: Delivery,
    pub facts: AgentFacts,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCard {
    name: Option<Arc<str>>,
    version: Option<Arc<str>>,
    url: Option<String>,
    protocol_version: Option<String>,
    preferred_transport: Option<String>,
    #[serde(default)]
    additional_interfaces: Vec<Interface>,
    #[serde(default)]
    supported_interfaces: Vec<Interface>,
    #[serde(default)]
    capabilities: Capabilities,
    #[serde(default)]
    default_input_modes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Interface {
    url: String,
    #[serde(alias = "protocolBinding")]
    transport: String,
    protocol_version: Option<String>,
}

#[derive(Default, Deserialize)]
struct Capabilities {
    #[serde(default)]
    streaming: bool,
}

/// Whose word counts for where the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addressing {
    /// The card names the path; the server is the one that the operator named.
    ByCard,
    /// We started it and know where it listens, which is at the root.
    Known,
}

pub(super) async fn fetch(server: &Server, addressing: Addressing) -> Result<Card, Trouble> {
    let base = server.address().path().trim_end_matches('/').to_owned();
    let below = format!("{base}{WELL_KNOWN}");
    let mut paths = vec![below.as_str(), WELL_KNOWN, OLD_WELL_KNOWN];
    paths.dedup();
    for path in paths {
        if let Some(body) = server.get(path).await? {
            return read(&body, server.address(), addressing);
        }
    }
    Err(Trouble::Unread(format!("there is no agent card at `{below}`")))
}

fn read(body: &Bytes, address: &Uri, addressing: Addressing) -> Result<Card, Trouble> {
    let card: WireCard =
        serde_json::from_slice(body).map_err(|error| Trouble::Unread(format!("its agent card: {error}")))?;
    let (protocol, url) = endpoint(&card)?;
    let path = match addressing {
        Addressing::Known => "/".to_owned(),
        Addressing::ByCard => path_of(url, address)?,
    };
    let takes = |kind: &str| card.default_input_modes.iter().any(|mode| mode.starts_with(kind) || mode == "*/*");
    let prompt = PromptAbilities { image: takes("image/"), audio: takes("audio/"), embedded: true };
    let facts = AgentFacts {
        name: card.name.clone(),
        version: card.version.clone(),
        prompt,
        load_session: false,
        mcp_http: false,
        handshake: Some(Opaque(body.clone())),
    };
    let delivery = if card.capabilities.streaming { Delivery::Stream } else { Delivery::Whole };
    Ok(Card { protocol, path, delivery, facts })
}

/// The newest version that both sides speak over JSON-RPC.
fn endpoint(card: &WireCard) -> Result<(Protocol, &str), Trouble> {
    let is_rpc = |transport: &str| transport.eq_ignore_ascii_case("JSONRPC");
    let rpc = || card.supported_interfaces.iter().filter(|interface| is_rpc(&interface.transport));
    let of = |version: &str| {
        rpc().find(|interface| interface.protocol_version.as_deref().is_some_and(|known| known.starts_with(version)))
    };
    if let Some(interface) = of("1.") {
        return Ok((Protocol::V10, &interface.url));
    }
    if let Some(interface) = of("0.3") {
        return Ok((Protocol::V03, &interface.url));
    }
    let is_03 = card.protocol_version.as_deref().is_none_or(|version| version.starts_with("0."));
    if is_03
        && card.preferred_transport.as_deref().is_none_or(is_rpc)
        && let Some(url) = &card.url
    {
        return Ok((Protocol::V03, url));
    }
    let other = card.additional_interfaces.iter().find(|interface| is_rpc(&interface.transport));
    match other {
        Some(interface) if is_03 => Ok((Protocol::V03, &interface.url)),
        _ => Err(Trouble::Unread("its agent card offers neither 0.3 nor 1.0 over JSON-RPC".to_owned())),
    }
}

/// The path that the card names. A key for one server is sent to no other, so the rest must be the configured address.
fn path_of(url: &str, address: &Uri) -> Result<String, Trouble> {
    let named: Uri = url.parse().map_err(|error| Trouble::Unread(format!("the address in its card: {error}")))?;
    let Some(host) = named.host() else { return Ok(named.path().to_owned()) };
    let port = |uri: &Uri| uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    let is_same = address
        .host()
        .is_some_and(|known| known.eq_ignore_ascii_case(host) || (is_loopback(known) && is_loopback(host)))
        && port(address) == port(&named)
        && address.scheme_str() == named.scheme_str();
    if is_same {
        return Ok(named.path().to_owned());
    }
    Err(Trouble::Unread(format!("its card names another server, `{url}`; if you trust it, set `url` to it")))
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_at(card: &serde_json::Value, address: &str) -> Result<Card, Trouble> {
        read(&Bytes::from(card.to_string()), &address.parse().unwrap(), Addressing::ByCard)
    }

    #[test]
    fn the_newest_version_that_both_speak_is_taken() {
        let v03 = json!({"name": "a", "url": "http://h:1/x", "protocolVersion": "0.3.0", "capabilities": {"streaming": true}});
        let card = read_at(&v03, "http://h:1").unwrap();
        assert_eq!((card.protocol, card.path.as_str(), card.delivery), (Protocol::V03, "/x", Delivery::Stream));
        let both = json!({"url": "http://h:1/", "protocolVersion": "0.3.0", "supportedInterfaces": [
            {"url": "http://h:1/old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": "http://h:1/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": "http://h:1/new", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
        let card = read_at(&both, "http://h:1").unwrap();
        assert_eq!((card.protocol, card.path.as_str(), card.delivery), (Protocol::V10, "/new", Delivery::Whole));
        let elsewhere = json!({"url": "http://h:1/grpc", "protocolVersion": "0.3.0", "preferredTransport": "GRPC",
            "additionalInterfaces": [{"url": "http://h:1/rpc", "transport": "JSONRPC"}]});
        assert_eq!(read_at(&elsewhere, "http://h:1").unwrap().path, "/rpc");
        let none = json!({"supportedInterfaces": [{"url": "http://h:1/", "protocolBinding": "GRPC", "protocolVersion": "1.0"}]});
        assert!(matches!(read_at(&none, "http://h:1"), Err(Trouble::Unread(_))));
    }

    #[test]
    fn a_card_leads_to_no_other_server() {
        let named = |url: &str| json!({"url": url, "protocolVersion": "0.3.0"});
        for (url, address) in [
            ("http://other:1/", "http://h:1"),
            ("http://h:2/", "http://h:1"),
            ("https://h:1/", "http://h:1"),
            ("http://127.0.0.1:1/", "http://h:1"),
        ] {
            let refused = read_at(&named(url), address).unwrap_err().to_string();
            assert!(refused.contains("another server"), "{url}: {refused}");
        }
        for (url, address) in
            [("http://localhost:1/a", "http://127.0.0.1:1"), ("http://[::1]:1/a", "http://localhost:1")]
        {
            assert_eq!(read_at(&named(url), address).unwrap().path, "/a");
        }
    }
}
