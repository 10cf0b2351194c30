//! Which addresses are not globally routable unicast: the IANA special-purpose registries, and where clouds keep metadata.
//!
//! Both registries (<https://www.iana.org/assignments/iana-ipv4-special-registry>,
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>) are here with every entry that is not globally
//! reachable. Their globally reachable entries (AS112, AMT and the anycast addresses inside 192.0.0.0/24 and 2001::/23)
//! serve no HTTP: the last two stay refused with the block around them.
//! In IPv6 only 2000::/3 is allocated for unicast, so what is outside is refused whether or not a registry names it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why a block is not reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reaches the machine itself on most systems.
    Unspecified,
    /// The machine itself.
    Loopback,
    /// This network segment only.
    LinkLocal,
    /// Where a cloud hands out credentials.
    Metadata,
    /// Inside an organisation.
    Private,
    /// Between a provider and its customers.
    Shared,
    /// Groups, not hosts.
    Multicast,
    /// Examples in documents.
    Documentation,
    /// Test networks.
    Benchmarking,
    /// IPv4 wrapped in IPv6 by a transition mechanism that nobody should rely on.
    Tunnel,
    /// Set aside by IANA.
    Reserved,
}

impl Kind {
    /// Whether only an allow-list entry that names the very address admits it: a network that happens to contain it,
    /// or a name that happens to resolve to it, does not.
    pub fn only_by_name(self) -> bool {
        matches!(
            self,
            Self::Unspecified | Self::Loopback | Self::LinkLocal | Self::Metadata
        )
    }

    /// A short label for counters.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link_local",
            Self::Metadata => "metadata",
            Self::Private => "private",
            Self::Shared => "shared",
            Self::Multicast => "multicast",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Tunnel => "tunnel",
            Self::Reserved => "reserved",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Metadata => "a cloud metadata address",
            Self::Private => "private",
            Self::Shared => "shared by a provider's customers",
            Self::Multicast => "multicast",
            Self::Documentation => "for documentation",
            Self::Benchmarking => "for benchmarks",
            Self::Tunnel => "IPv4 inside a transition mechanism of IPv6",
            Self::Reserved => "reserved",
        })
    }
}

/// A range of addresses that is refused.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    network: IpAddr,
    prefix: u8,
    /// Why.
    pub kind: Kind,
}

impl Block {
    const fn v4(network: [u8; 4], prefix: u8, kind: Kind) -> Self {
        let [a, b, c, d] = network;
        Self {
            network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            prefix,
            kind,
        }
    }

    const fn v6(network: [u16; 8], prefix: u8, kind: Kind) -> Self {
        let [a, b, c, d, e, f, g, h] = network;
        Self {
            network: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)),
            prefix,
            kind,
        }
    }

    fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.prefix);
                network.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.prefix);
                network.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            network,
            prefix,
            kind,
        } = self;
        if *kind == Kind::Metadata {
            return kind.fmt(f);
        }
        write!(f, "{kind} ({network}/{prefix})")
    }
}

/// First match wins, so single addresses stand before the networks around them.
static V4: [Block; 22] = [
    // Alibaba Cloud, Azure's wire server, Oracle Cloud, and the link-local ones of nearly everybody else.
    Block::v4([100, 100, 100, 200], 32, Kind::Metadata),
    Block::v4([168, 63, 129, 16], 32, Kind::Metadata),
    Block::v4([192, 0, 0, 192], 32, Kind::Metadata),
    Block::v4([169, 254, 169, 254], 32, Kind::Metadata),
    Block::v4([169, 254, 170, 2], 32, Kind::Metadata),
    Block::v4([169, 254, 170, 23], 32, Kind::Metadata),
    Block::v4([0, 0, 0, 0], 8, Kind::Unspecified),
    Block::v4([10, 0, 0, 0], 8, Kind::Private),
    Block::v4([100, 64, 0, 0], 10, Kind::Shared),
    Block::v4([127, 0, 0, 0], 8, Kind::Loopback),
    Block::v4([169, 254, 0, 0], 16, Kind::LinkLocal),
    Block::v4([172, 16, 0, 0], 12, Kind::Private),
    Block::v4([192, 0, 0, 0], 24, Kind::Reserved),
    Block::v4([192, 0, 2, 0], 24, Kind::Documentation),
    Block::v4([192, 88, 99, 0], 24, Kind::Reserved),
    Block::v4([192, 168, 0, 0], 16, Kind::Private),
    Block::v4([198, 18, 0, 0], 15, Kind::Benchmarking),
    Block::v4([198, 51, 100, 0], 24, Kind::Documentation),
    Block::v4([203, 0, 113, 0], 24, Kind::Documentation),
    Block::v4([224, 0, 0, 0], 4, Kind::Multicast),
    Block::v4([255, 255, 255, 255], 32, Kind::Reserved),
    Block::v4([240, 0, 0, 0], 4, Kind::Reserved),
];

/// The same for IPv6. What wraps an IPv4 address is judged by that first, see [`refused`].
static V6: [Block; 24] = [
    Block::v6([0, 0, 0, 0, 0, 0, 0, 0], 128, Kind::Unspecified),
    Block::v6([0, 0, 0, 0, 0, 0, 0, 1], 128, Kind::Loopback),
    // Amazon (metadata, pod identity), Google, Oracle.
    Block::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, Kind::Metadata),
    Block::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128, Kind::Metadata),
    Block::v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, Kind::Metadata),
    Block::v6(
        [0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe],
        128,
        Kind::Metadata,
    ),
    Block::v6([0, 0, 0, 0, 0, 0, 0, 0], 96, Kind::Tunnel),
    Block::v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, Kind::Tunnel),
    Block::v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Kind::Tunnel),
    Block::v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Kind::Tunnel),
    Block::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Kind::Tunnel),
    Block::v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, Kind::Reserved),
    Block::v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64, Kind::Reserved),
    Block::v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, Kind::Benchmarking),
    Block::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Kind::Reserved),
    Block::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Kind::Documentation),
    Block::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Kind::Documentation),
    Block::v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, Kind::Reserved),
    Block::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Kind::Private),
    Block::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, Kind::LinkLocal),
    Block::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, Kind::Private),
    Block::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Kind::Multicast),
    // Everything else outside 2000::/3, in two halves.
    Block::v6([0, 0, 0, 0, 0, 0, 0, 0], 3, Kind::Reserved),
    Block::v6([0x4000, 0, 0, 0, 0, 0, 0, 0], 2, Kind::Reserved),
];

/// The upper half of the address space, none of it allocated for unicast beyond what the table names.
static V6_UPPER: Block = Block::v6([0x8000, 0, 0, 0, 0, 0, 0, 0], 1, Kind::Reserved);

/// NAT64 as everybody uses it: reaches the IPv4 address inside, so that address decides alone.
static NAT64: Block = Block::v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, Kind::Tunnel);

/// The block that refuses `address`, or `None` for globally routable unicast.
pub fn refused(address: IpAddr) -> Option<&'static Block> {
    let address = address.to_canonical();
    let IpAddr::V6(v6) = address else {
        return V4.iter().find(|block| block.contains(address));
    };
    // Loopback and unspecified look like IPv4-compatible addresses and are not.
    if !v6.is_loopback() && !v6.is_unspecified() {
        let wrapped = embedded(address).into_iter().chain(teredo_server(v6));
        if let Some(block) = wrapped
            .into_iter()
            .find_map(|inner| V4.iter().find(|block| block.contains(IpAddr::V4(inner))))
        {
            return Some(block);
        }
        if NAT64.contains(address) {
            return None;
        }
    }
    V6.iter()
        .chain([&V6_UPPER])
        .find(|block| block.contains(address))
}

/// The IPv4 address that a packet to `address` would reach, where it wraps one: compatible (RFC 4291), translated
/// (RFC 2765), NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056) and Teredo (RFC 4380). Mapped ones are IPv4 to begin with.
pub fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let low = |bits: u128| Some(Ipv4Addr::from_bits(bits as u32));
    let bits = address.to_bits();
    match address.segments() {
        [0, 0, 0, 0, 0, 0, ..] if !address.is_loopback() && !address.is_unspecified() => low(bits),
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => low(bits),
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] => low(bits),
        [0x2002, ..] => low(bits >> 80),
        [0x2001, 0, ..] => low(!bits),
        _ => None,
    }
}

/// A Teredo address also names the server that relays to it.
fn teredo_server(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0x2001, 0, ..] => Some(Ipv4Addr::from_bits((address.to_bits() >> 64) as u32)),
        _ => None,
    }
}
