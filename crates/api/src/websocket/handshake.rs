//! The upgrade: what a client must have sent, and what it gets back.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A good request for a WebSocket.
#[derive(Debug)]
pub struct Offer {
    accept: HeaderValue,
    /// The subprotocols that the client would speak, in its order.
    pub protocols: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnUpgrade {
    #[error("this address is a WebSocket; connect with `ws://`, by HTTP/1.1 with `upgrade: websocket`")]
    Plain,
    #[error("`sec-websocket-version` must be `13`")]
    Version,
    #[error("`sec-websocket-key` must be one key of 16 bytes in base64")]
    Key,
}

impl Offer {
    pub fn read(method: &Method, version: Version, headers: &HeaderMap) -> Result<Self, NotAnUpgrade> {
        let wants = names(headers, &header::CONNECTION).any(|name| name.eq_ignore_ascii_case("upgrade"))
            && names(headers, &header::UPGRADE).any(|name| name.eq_ignore_ascii_case("websocket"));
        if *method != Method::GET || version != Version::HTTP_11 || !wants {
            return Err(NotAnUpgrade::Plain);
        }
        if headers.get(header::SEC_WEBSOCKET_VERSION).map(HeaderValue::as_bytes) != Some(b"13") {
            return Err(NotAnUpgrade::Version);
        }
        let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
        let (Some(key), None) = (keys.next(), keys.next()) else { return Err(NotAnUpgrade::Key) };
        if STANDARD.decode(key.as_bytes()).map(|key| key.len()) != Ok(16) {
            return Err(NotAnUpgrade::Key);
        }
        let accept = Sha1::new().chain_update(key.as_bytes()).chain_update(GUID).finalize();
        let accept = HeaderValue::try_from(STANDARD.encode(accept)).map_err(|_| NotAnUpgrade::Key)?;
        let protocols = names(headers, &header::SEC_WEBSOCKET_PROTOCOL).map(str::to_owned).collect();
        Ok(Self { accept, protocols })
    }

    /// The 101. Once it is sent, the connection speaks WebSocket.
    pub fn switching(&self, protocol: Option<&str>) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept.clone());
        // It came as a header, so it can be one.
        if let Some(Ok(protocol)) = protocol.map(HeaderValue::try_from) {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

/// The names in a header that is a list of them.
fn names<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    const GOOD: [(&str, &str); 4] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    #[test]
    fn the_key_of_the_standard_gets_the_answer_of_the_standard() {
        let mut given = headers(&GOOD);
        given.append("sec-websocket-protocol", HeaderValue::from_static("one, two"));
        given.append("sec-websocket-protocol", HeaderValue::from_static("three"));
        let offer = Offer::read(&Method::GET, Version::HTTP_11, &given).unwrap();
        assert_eq!(offer.protocols, ["one", "two", "three"]);
        let response = offer.switching(Some("two"));
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(response.headers()["sec-websocket-protocol"], "two");
    }

    #[test]
    fn what_is_no_upgrade_is_told_apart() {
        let without = |name: &str| {
            let kept: Vec<_> = GOOD.iter().copied().filter(|(other, _)| *other != name).collect();
            headers(&kept)
        };
        for (given, expected) in [
            (without("upgrade"), NotAnUpgrade::Plain),
            (without("connection"), NotAnUpgrade::Plain),
            (without("sec-websocket-version"), NotAnUpgrade::Version),
            (without("sec-websocket-key"), NotAnUpgrade::Key),
        ] {
            assert_eq!(Offer::read(&Method::GET, Version::HTTP_11, &given).unwrap_err(), expected);
        }
        assert!(Offer::read(&Method::POST, Version::HTTP_11, &headers(&GOOD)).is_err());
        assert!(Offer::read(&Method::GET, Version::HTTP_2, &headers(&GOOD)).is_err());
    }
}
