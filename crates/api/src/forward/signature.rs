//! The header by which one gateway vouches to another for a request: whose key it came with, from which address, when, and
//! for which gateway. Signed with a key that only the gateways of the cluster have.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{HeaderName, HeaderValue, Method, Uri};
use gembridge_core::directory::NodeId;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::keys::Digest;

pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-gembridge-forwarded");

/// How long a signature is good, and by how much the clocks of two gateways may differ.
const GOOD_FOR: Duration = Duration::from_secs(30);

const VERSION: &str = "1";

/// Whose request it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub digest: Digest,
    pub client: IpAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error(
        "the request was not passed on by a gateway of this cluster; `cluster.secret` must be the same on all of them"
    )]
    Signature,
    #[error("the request was passed on too long ago; the clocks of the gateways differ, or it was sent again")]
    Time,
}

pub(super) struct Seal {
    node: NodeId,
    key: [u8; 32],
}

impl Seal {
    pub(super) fn new(node: NodeId, key: [u8; 32]) -> Self {
        Self { node, key }
    }

    pub(super) fn close(&self, to: NodeId, method: &Method, uri: &Uri, digest: &Digest, client: IpAddr) -> HeaderValue {
        let said = format!("{VERSION} {} {} {client}", now(), digest.to_hex());
        let mac = self.mac(to, method, uri, &said).finalize().into_bytes();
        let signed = format!("{said} {}", Digest::from_bytes(mac.into()).to_hex());
        HeaderValue::from_str(&signed).unwrap_or_else(|_| unreachable!("digits and words are a header"))
    }

    pub(super) fn open(&self, method: &Method, uri: &Uri, value: &HeaderValue) -> Result<Hop, Broken> {
        let (said, mac) = value.to_str().ok().and_then(|text| text.rsplit_once(' ')).ok_or(Broken::Signature)?;
        let mac = Digest::from_hex(mac).ok_or(Broken::Signature)?;
        let checked = self.mac(self.node, method, uri, said).verify_slice(&mac.into_bytes());
        checked.map_err(|_| Broken::Signature)?;
        let mut words = said.split(' ');
        let (version, time) = (words.next(), words.next().and_then(|time| time.parse::<u64>().ok()));
        let digest = words.next().and_then(Digest::from_hex);
        let client = words.next().and_then(|client| client.parse().ok());
        let (Some(VERSION), Some(time), Some(digest), Some(client)) = (version, time, digest, client) else {
            return Err(Broken::Signature);
        };
        if Duration::from_millis(now().abs_diff(time)) > GOOD_FOR {
            return Err(Broken::Time);
        }
        Ok(Hop { digest, client })
    }

    fn mac(&self, to: NodeId, method: &Method, uri: &Uri, said: &str) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        for part in [&to.to_string(), method.as_str(), target, said] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s7_a_signature_holds_for_one_gateway_one_request_and_one_secret() {
        let (a, b) = (NodeId::fresh(), NodeId::fresh());
        let (from, to) = (Seal::new(a, [1; 32]), Seal::new(b, [1; 32]));
        let (uri, other): (Uri, Uri) = ("/v1/x?y=1".parse().unwrap(), "/v1/z".parse().unwrap());
        let digest = Digest::of(b"key");
        let signed = from.close(b, &Method::POST, &uri, &digest, "10.0.0.7".parse().unwrap());
        let hop = to.open(&Method::POST, &uri, &signed).unwrap();
        assert!(hop.digest.matches(&digest) && hop.client.to_string() == "10.0.0.7");
        assert_eq!(to.open(&Method::POST, &other, &signed).unwrap_err(), Broken::Signature);
        assert_eq!(to.open(&Method::GET, &uri, &signed).unwrap_err(), Broken::Signature);
        assert_eq!(from.open(&Method::POST, &uri, &signed).unwrap_err(), Broken::Signature);
        assert_eq!(Seal::new(b, [2; 32]).open(&Method::POST, &uri, &signed).unwrap_err(), Broken::Signature);
        for forged in ["", "1", "1 2 3 4 5", &signed.to_str().unwrap().replace("10.0.0.7", "10.0.0.8")] {
            assert!(to.open(&Method::POST, &uri, &HeaderValue::from_str(forged).unwrap()).is_err(), "{forged}");
        }
    }

    #[test]
    fn r18_a_signature_of_long_ago_or_far_ahead_is_refused() {
        let node = NodeId::fresh();
        let seal = Seal::new(node, [1; 32]);
        let (uri, method): (Uri, Method) = ("/".parse().unwrap(), Method::POST);
        for time in [now() - 60_000, now() + 60_000] {
            let said = format!("{VERSION} {time} {} 10.0.0.7", Digest::of(b"key").to_hex());
            let mac = seal.mac(node, &method, &uri, &said).finalize().into_bytes();
            let signed = format!("{said} {}", Digest::from_bytes(mac.into()).to_hex());
            let opened = seal.open(&method, &uri, &HeaderValue::from_str(&signed).unwrap());
            assert_eq!(opened.unwrap_err(), Broken::Time);
        }
    }
}
