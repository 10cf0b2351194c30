//! Where a request comes from. `X-Forwarded-For` counts only as far as trusted proxies vouch for it.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use ipnet::IpNet;

/// The proxies whose `X-Forwarded-For` is believed; none by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies(Vec<IpNet>);

impl Proxies {
    pub(crate) fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Finds the sender's address: the right-most entry that no trusted proxy wrote about another one.
    ///
    /// Each proxy appends the address it was called from, so entries are believed from the right for as long as the one
    /// that wrote them is trusted. An entry that is no address ends the chain: the proxy that passed it on is the source.
    pub(crate) fn source(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut source = peer.to_canonical();
        let entries = headers
            .get_all("x-forwarded-for")
            .iter()
            .rev()
            .flat_map(|value| value.as_bytes().rsplit(|&byte| byte == b','));
        for entry in entries {
            if !self.trusts(source) {
                break;
            }
            match std::str::from_utf8(entry).ok().and_then(address) {
                Some(address) => source = address,
                None => break,
            }
        }
        source
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn address(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    let bare = entry
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(entry);
    bare.parse()
        .ok()
        .or_else(|| entry.parse::<SocketAddr>().ok().map(|it| it.ip()))
        .map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(trusted: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let proxies = Proxies::new(trusted.iter().map(|it| it.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        proxies.source(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn forwarded_headers_count_only_from_configured_cidrs() {
        assert_eq!(source(&[], "10.0.0.1", &["192.0.2.7"]), "10.0.0.1");
        assert_eq!(
            source(&["10.0.0.0/8"], "203.0.113.1", &["192.0.2.7"]),
            "203.0.113.1"
        );
        assert_eq!(
            source(&["10.0.0.0/8"], "10.0.0.1", &["192.0.2.7"]),
            "192.0.2.7"
        );
    }

    #[test]
    fn the_right_most_untrusted_entry_is_the_source() {
        let trusted = ["10.0.0.0/8", "2001:db8::/32"];
        for (forwarded, expected) in [
            (&["1.1.1.1, 192.0.2.7, 10.0.0.2"][..], "192.0.2.7"),
            (&["1.1.1.1", "192.0.2.7", "10.0.0.2,10.0.0.3"], "192.0.2.7"),
            (&["10.0.0.9"], "10.0.0.9"),
            (&["192.0.2.7:4711"], "192.0.2.7"),
            (&["192.0.2.7, [2001:db8::1]:80"], "192.0.2.7"),
            (&["192.0.2.7, unknown"], "10.0.0.1"),
            (&["192.0.2.7, unknown, 10.0.0.2"], "10.0.0.2"),
            (&[""], "10.0.0.1"),
            (&[], "10.0.0.1"),
        ] {
            assert_eq!(source(&trusted, "10.0.0.1", forwarded), expected);
            assert_eq!(source(&trusted, "::ffff:10.0.0.1", forwarded), expected);
        }
    }
}
