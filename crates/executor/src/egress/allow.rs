//! What the operator lets a namespace reach beyond the public internet: `[*.]host[:port|:*]` or `CIDR[:port|:*]`.
//!
//! - A name without a port means its scheme's own port; `:*` means any. `*.example.com` means every name below
//!   `example.com` at any depth, not `example.com` itself.
//! - An address is a network of one (`127.0.0.1` is `127.0.0.1/32`); a network without a port means any port.
//!   IPv6 with a port is written in brackets: `[fd00::1]:443`, `[fd00::/8]:443`, or `fd00::/8:443`.
//! - A name entry admits whatever the name resolves to, except loopback, link-local and metadata addresses. Those are
//!   admitted by an entry for that very address, and loopback also by the name `localhost`.
//! - A network entry admits addresses; it does not lift the refusal of a name.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::Host;

use super::Target;
use super::address::Kind;

/// A parsed allow-list; empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    pattern: Pattern,
    ports: Ports,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Name(String),
    /// With the leading dot.
    Below(String),
    Network(IpNet),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ports {
    Unset,
    Any,
    One(u16),
}

/// An entry that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("egress allow-list entry {entry:?}: {problem}")]
pub struct AllowError {
    /// As written.
    pub entry: String,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

impl AllowList {
    /// Reads a list, one entry each.
    ///
    /// # Errors
    /// The first entry that cannot be read.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, AllowError> {
        entries
            .iter()
            .map(|entry| entry.as_ref().parse::<Entry>())
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether an entry names the target's host name, on its port.
    pub(crate) fn admits_name(&self, target: &Target) -> bool {
        self.0.iter().any(|entry| entry.names(target))
    }

    /// Whether an entry opens the target's port for it.
    pub(super) fn admits_port(&self, target: &Target) -> bool {
        self.0.iter().any(|entry| {
            entry.ports != Ports::Unset
                && (entry.names(target)
                    || target
                        .address()
                        .is_some_and(|address| entry.holds(target, address.to_canonical())))
        })
    }

    /// Whether an entry admits `address`, which is of `kind`, as a place to reach `target` at.
    pub(super) fn admits_address(&self, target: &Target, address: IpAddr, kind: Kind) -> bool {
        self.0.iter().any(|entry| match &entry.pattern {
            Pattern::Network(network) => {
                entry.holds(target, address)
                    && (!kind.only_by_name() || network.prefix_len() == network.max_prefix_len())
            }
            Pattern::Name(name) => {
                entry.names(target)
                    && (!kind.only_by_name() || (kind == Kind::Loopback && name == "localhost"))
            }
            Pattern::Below(_) => entry.names(target) && !kind.only_by_name(),
        })
    }
}

impl Entry {
    fn names(&self, target: &Target) -> bool {
        let Host::Domain(host) = &target.host else {
            return false;
        };
        let matches = match &self.pattern {
            Pattern::Name(name) => host == name,
            Pattern::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
            Pattern::Network(_) => false,
        };
        matches
            && match self.ports {
                Ports::Unset => target.default_port,
                Ports::Any => true,
                Ports::One(port) => port == target.port,
            }
    }

    fn holds(&self, target: &Target, address: IpAddr) -> bool {
        let Pattern::Network(network) = &self.pattern else {
            return false;
        };
        network.contains(&address)
            && match self.ports {
                Ports::Unset | Ports::Any => true,
                Ports::One(port) => port == target.port,
            }
    }
}

impl FromStr for Entry {
    type Err = AllowError;

    fn from_str(text: &str) -> Result<Self, AllowError> {
        let fail = |problem: &str| AllowError {
            entry: text.to_owned(),
            problem: problem.to_owned(),
        };
        if text.is_empty() {
            return Err(fail("is empty"));
        }
        if text.contains("://") {
            return Err(fail(
                "is a URL; write the host alone, such as api.example.com:8443",
            ));
        }
        let (host, ports) = split_port(text).map_err(|problem| fail(&problem))?;
        let pattern = pattern(host).map_err(|problem| fail(&problem))?;
        Ok(Self { pattern, ports })
    }
}

/// Takes the port off, minding that colons are also part of IPv6.
fn split_port(text: &str) -> Result<(&str, Ports), String> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("has [ without ]")?;
        if !host.contains(':') {
            return Err("has brackets around something that is not IPv6".to_owned());
        }
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, parse_port(port)?)),
            None if rest.is_empty() => Ok((host, Ports::Unset)),
            None => Err("has text between ] and the port".to_owned()),
        };
    }
    // A prefix length ends an IPv6 network, so a colon after it starts a port.
    if let Some((network, rest)) = text.split_once('/') {
        return match rest.split_once(':') {
            Some((prefix, port)) => {
                Ok((&text[..network.len() + 1 + prefix.len()], parse_port(port)?))
            }
            None => Ok((text, Ports::Unset)),
        };
    }
    match text.split_once(':') {
        None => Ok((text, Ports::Unset)),
        Some((_, port)) if port.contains(':') => Ok((text, Ports::Unset)),
        Some((host, port)) => Ok((host, parse_port(port)?)),
    }
}

fn parse_port(text: &str) -> Result<Ports, String> {
    if text == "*" {
        return Ok(Ports::Any);
    }
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u16>() {
        Ok(port) if digits && port > 0 => Ok(Ports::One(port)),
        _ => Err(format!("has port {text:?}; a port is 1 to 65535 or *")),
    }
}

fn pattern(host: &str) -> Result<Pattern, String> {
    if host.contains('/') {
        return match host.parse::<IpNet>() {
            Ok(network) if network.network() == network.addr() => Ok(Pattern::Network(network)),
            Ok(network) => Err(format!(
                "has bits set after its prefix; write {} or an address alone",
                network.trunc()
            )),
            Err(_) => Err("is not a network; write an address, / and a prefix length".to_owned()),
        };
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(Pattern::Network(address.to_canonical().into()));
    }
    if host.contains(':') {
        return Err("is not an IPv6 address".to_owned());
    }
    let (wildcard, name) = match host.strip_prefix("*.") {
        Some(name) => (true, name),
        None => (false, host),
    };
    if name.contains('*') {
        return Err("has a * that is not a leading \"*.\"".to_owned());
    }
    // The URL parser's own reading of a host, so that both sides compare the same text.
    match Host::parse(name) {
        Ok(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_owned();
            if name.is_empty() || name.split('.').any(str::is_empty) {
                Err("has an empty label".to_owned())
            } else if name.contains(['@', ',', ' ']) {
                Err("is not a host name".to_owned())
            } else if wildcard {
                Ok(Pattern::Below(format!(".{name}")))
            } else {
                Ok(Pattern::Name(name))
            }
        }
        Ok(Host::Ipv4(address)) if !wildcard => Err(format!("is an odd spelling; write {address}")),
        Ok(_) => Err("has a wildcard before an address".to_owned()),
        Err(_) => Err("is not a host name".to_owned()),
    }
}
