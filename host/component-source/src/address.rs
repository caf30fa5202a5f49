//! Which addresses of the network are public.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use ipnet::IpNet;

/// What IANA's registries of special-purpose addresses do not list as globally reachable, and multicast.
const NOT_PUBLIC: [&str; 27] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/128",
    "::1/128",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001:db8::/32",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

static NETWORKS: LazyLock<Vec<IpNet>> =
    LazyLock::new(|| NOT_PUBLIC.iter().filter_map(|network| network.parse().ok()).collect());

/// Returns whether an address is one of the public internet. An IPv6 address that stands for an IPv4 address
/// counts as that one.
pub(crate) fn is_public(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V6(v6) => embedded(v6).map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    };
    !NETWORKS.iter().any(|network| network.contains(&address))
}

/// Returns the IPv4 address that a gateway or the system makes of an IPv6 address: IPv4-mapped,
/// IPv4-compatible, 6to4 and NAT64 addresses.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let at = |idx: usize| {
        let [a, b] = segments[idx].to_be_bytes();
        let [c, d] = segments[idx + 1].to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(at(6)),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => Some(at(6)),
        [0x2002, ..] => Some(at(1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_is_well_formed() {
        assert_eq!(NETWORKS.len(), NOT_PUBLIC.len());
    }

    #[test]
    fn private_link_local_and_loopback_addresses_are_not_public() {
        for address in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2001:0:4136:e378::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "140.82.121.34",
            "172.32.0.1",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
