//! The addresses that count as one client, for limits on connections and on requests.

use std::net::{IpAddr, Ipv6Addr};

/// An IPv4 address, or the /64 that one IPv6 customer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientPrefix(u64);

impl From<IpAddr> for ClientPrefix {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            // ::/32 is not assigned to anybody, so the two kinds never meet.
            IpAddr::V4(address) => Self(u64::from(address.to_bits())),
            IpAddr::V6(address) => Self(upper_half(address)),
        }
    }
}

impl ClientPrefix {
    pub fn to_bits(self) -> u64 {
        self.0
    }
}

fn upper_half(address: Ipv6Addr) -> u64 {
    u64::try_from(address.to_bits() >> 64).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s28_the_prefix_of_an_ipv6_client_is_its_64() {
        let prefix = |text: &str| ClientPrefix::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(prefix("2001:db8:1:2::1"), prefix("2001:db8:1:2:ffff::9"));
        assert_ne!(prefix("2001:db8:1:2::1"), prefix("2001:db8:1:3::1"));
        assert_eq!(prefix("::ffff:1.2.3.4"), prefix("1.2.3.4"));
    }
}
