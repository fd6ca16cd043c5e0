//! Whose request it is, by address: the peer, or the last hop that a configured proxy vouches for.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use axum::http::HeaderMap;

/// An address or a block of them: `10.0.0.7`, `10.0.0.0/8`, `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address and no block of addresses; write `10.0.0.7` or `10.0.0.0/8`")]
pub struct NotANetwork(String);

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || NotANetwork(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address = address.parse::<IpAddr>().map_err(|_| wrong())?.to_canonical();
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(width);
        if bits > width {
            return Err(wrong());
        }
        Ok(Self { address, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                net.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(net), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                net.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }
}

/// The proxies whose forwarding headers are believed.
#[derive(Clone, Debug, Default)]
pub struct Proxies(pub Vec<Network>);

impl Proxies {
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(peer))
    }

    /// The last hop that is not one of our proxies. What a stranger writes into `X-Forwarded-For` stands further left
    /// than what a proxy appended, so it is read from the right and never beyond the first stranger.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.trusts(client) {
            return client;
        }
        for value in headers.get_all("x-forwarded-for").iter().rev() {
            let Ok(value) = value.to_str() else { return client };
            for hop in value.rsplit(',') {
                let Ok(hop) = hop.trim().parse::<IpAddr>() else { return client };
                client = hop.to_canonical();
                if !self.trusts(client) {
                    return client;
                }
            }
        }
        client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_holds_its_addresses_and_no_others() {
        for (network, address, inside) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.8", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe00::1", false),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
        ] {
            assert_eq!(network.parse::<Network>().unwrap().contains(ip(address)), inside, "{network} {address}");
        }
        for wrong in ["", "10.0.0.0/33", "::/129", "x/8", "10.0.0.0/", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn s28_only_a_configured_proxy_can_name_the_client() {
        let proxies = Proxies(vec!["10.0.0.0/8".parse().unwrap()]);
        for (peer, forwarded, client) in [
            ("203.0.113.9", "1.2.3.4", "203.0.113.9"),
            ("10.0.0.1", "1.2.3.4", "1.2.3.4"),
            ("10.0.0.1", "9.9.9.9, 1.2.3.4", "1.2.3.4"),
            ("10.0.0.1", "9.9.9.9, 1.2.3.4, 10.0.0.2", "1.2.3.4"),
            ("10.0.0.1", "junk", "10.0.0.1"),
            ("10.0.0.1", "1.2.3.4, junk, 10.0.0.2", "10.0.0.2"),
            ("10.0.0.1", "", "10.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            assert_eq!(proxies.client(ip(peer), &headers), ip(client), "{peer} {forwarded}");
        }
    }
}
