//! The egress guard: which targets a step may reach. Pure: nothing is resolved or dialled here.
//!
//! Two checks, both on every connection and every redirect. [`Guard::check_url`] judges what a URL says, before any
//! look-up; [`Guard::check_answers`] judges the addresses its name resolved to, and hands back those that may be dialled.
//! The rule is "only globally routable unicast", by the explicit table of [`address`]; what the operator's [`AllowList`]
//! names is let through. Whatever way an address is spelled (decimal, octal, hex, short, IDNA digits, trailing dot), the
//! WHATWG URL parser has turned it into an address before it arrives here.

pub mod address;
pub mod allow;
mod name;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use url::{Host, Url};

pub use address::Kind;
pub use allow::{AllowError, AllowList};
pub use name::Rule;

/// Where the operator of an installation sets the allow-list; messages name it.
pub const ALLOW_SETTING: &str = "executor.allow";

/// Judges targets. One for the installation; what a namespace may reach beyond it comes with each request.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Refused on top of the table; no allow-list lifts these.
    pub blocked: Vec<IpNet>,
    /// The cluster's DNS domain, whose names are refused.
    pub cluster_domain: String,
    /// The ports that may be reached, where the operator set a list. An allow-list entry with a port adds to it.
    pub ports: Option<Vec<u16>>,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            blocked: Vec::new(),
            cluster_domain: "cluster.local".to_owned(),
            ports: None,
        }
    }
}

/// What a URL asks to be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Name in lower case and Punycode without a trailing dot, or address.
    pub host: Host<String>,
    /// The URL's port, or its scheme's.
    pub port: u16,
    /// Whether that is the scheme's own port, which an allow-list entry without a port means.
    pub default_port: bool,
}

impl Target {
    /// Reads the target out of `url`.
    ///
    /// # Errors
    /// A scheme other than http and https, or no host.
    pub fn of(url: &Url) -> Result<Self, Denied> {
        let scheme_port = match url.scheme() {
            "http" => 80,
            "https" => 443,
            other => return Err(Denied::new(other, Reason::Scheme)),
        };
        let host = match url.host() {
            Some(Host::Domain(name)) => Host::Domain(name.trim_end_matches('.').to_owned()),
            Some(Host::Ipv4(address)) => Host::Ipv4(address),
            Some(Host::Ipv6(address)) => Host::Ipv6(address),
            None => return Err(Denied::new(url.scheme(), Reason::NoHost)),
        };
        if matches!(&host, Host::Domain(name) if name.is_empty()) {
            return Err(Denied::new(url.scheme(), Reason::NoHost));
        }
        let port = url.port().unwrap_or(scheme_port);
        Ok(Self {
            host,
            port,
            default_port: port == scheme_port,
        })
    }

    /// The address, where the host is one.
    pub fn address(&self) -> Option<IpAddr> {
        match self.host {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
        }
    }

    /// The allow-list entry that would name this host on this port.
    fn entry(&self) -> String {
        match self.address() {
            Some(address) => SocketAddr::new(address.to_canonical(), self.port).to_string(),
            None if self.default_port => self.host.to_string(),
            None => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt(f)?;
        if !self.default_port {
            write!(f, ":{}", self.port)?;
        }
        Ok(())
    }
}

impl Guard {
    /// Judges what `url` says, before any look-up: scheme, host name or literal address, and port.
    ///
    /// A name that passes may still resolve to an address that does not; see [`Guard::check_answers`].
    ///
    /// # Errors
    /// What was refused, why, and which setting admits it.
    pub fn check_url(&self, url: &Url, allow: &AllowList) -> Result<(), Denied> {
        self.check_target(&Target::of(url)?, allow)
    }

    /// [`Guard::check_url`] for a target already read.
    ///
    /// # Errors
    /// The same.
    pub fn check_target(&self, target: &Target, allow: &AllowList) -> Result<(), Denied> {
        self.check_port(target, allow)?;
        match &target.host {
            Host::Domain(name) => match name::refused(name, &self.cluster_domain) {
                Some(rule) if !allow.admits_name(target) => Err(Denied::new(
                    name,
                    Reason::Name {
                        rule,
                        entry: target.entry(),
                    },
                )),
                _ => Ok(()),
            },
            Host::Ipv4(address) => self.check_dialled(target, IpAddr::V4(*address), allow),
            Host::Ipv6(address) => self.check_dialled(target, IpAddr::V6(*address), allow),
        }
    }

    /// Judges an address on its own, with no allow-list.
    ///
    /// # Errors
    /// The block that the address is in.
    pub fn check_address(&self, address: IpAddr) -> Result<(), Denied> {
        let target = Target {
            host: match address {
                IpAddr::V4(address) => Host::Ipv4(address),
                IpAddr::V6(address) => Host::Ipv6(address),
            },
            port: 443,
            default_port: true,
        };
        self.check_dialled(&target, address, &AllowList::default())
    }

    /// Judges the answers of a look-up of `target`'s name and returns what may be dialled.
    ///
    /// One refused answer refuses the name: a name that mixes public and private addresses is either an attack or a
    /// mistake, and which of them is dialled must not depend on luck.
    ///
    /// # Errors
    /// The first address refused.
    pub fn check_answers(
        &self,
        target: &Target,
        answers: &[IpAddr],
        allow: &AllowList,
    ) -> Result<Vec<SocketAddr>, Denied> {
        answers
            .iter()
            .map(|address| {
                self.check_dialled(target, *address, allow)?;
                Ok(SocketAddr::new(*address, target.port))
            })
            .collect()
    }

    fn check_port(&self, target: &Target, allow: &AllowList) -> Result<(), Denied> {
        match &self.ports {
            Some(ports) if !ports.contains(&target.port) && !allow.admits_port(target) => {
                Err(Denied::new(
                    target.host.to_string(),
                    Reason::Port {
                        port: target.port,
                        entry: target.entry(),
                    },
                ))
            }
            _ => Ok(()),
        }
    }

    fn check_dialled(
        &self,
        target: &Target,
        address: IpAddr,
        allow: &AllowList,
    ) -> Result<(), Denied> {
        // An address inside IPv6 is judged as what it reaches, and as it is written.
        let canonical = address.to_canonical();
        let inner = address::embedded(canonical).map(IpAddr::V4);
        if let Some(block) = self.blocked.iter().find(|block| {
            block.contains(&canonical) || inner.is_some_and(|inner| block.contains(&inner))
        }) {
            return Err(Denied::new(
                target.host.to_string(),
                Reason::Blocked {
                    address,
                    block: *block,
                    literal: target.address().is_some(),
                },
            ));
        }
        let Some(block) = address::refused(canonical) else {
            return Ok(());
        };
        if allow.admits_address(target, canonical, block.kind) {
            return Ok(());
        }
        // A name entry does not reach these, so the advice names the address.
        let entry = if block.kind.only_by_name() {
            SocketAddr::new(canonical, target.port).to_string()
        } else {
            target.entry()
        };
        Err(Denied::new(
            target.host.to_string(),
            Reason::Address {
                address,
                block,
                literal: target.address().is_some(),
                entry,
            },
        ))
    }
}

/// A refusal. Its text says what was refused, why, and which setting admits it, if one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The host or scheme refused.
    pub target: String,
    /// Why.
    pub reason: Reason,
}

/// Why the guard refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Neither http nor https.
    Scheme,
    /// The URL has no host.
    NoHost,
    /// The name is one that no public resolver should be asked for.
    Name {
        /// The rule it breaks.
        rule: Rule,
        /// The allow-list entry that admits it.
        entry: String,
    },
    /// The address is not globally routable unicast.
    Address {
        /// As written or resolved.
        address: IpAddr,
        /// What it is part of.
        block: &'static address::Block,
        /// Whether the URL held the address itself.
        literal: bool,
        /// The allow-list entry that admits it.
        entry: String,
    },
    /// The operator blocks the address, allow-list or not.
    Blocked {
        /// As written or resolved.
        address: IpAddr,
        /// The block it is in.
        block: IpNet,
        /// Whether the URL held the address itself.
        literal: bool,
    },
    /// The operator allows certain ports only.
    Port {
        /// The one asked for.
        port: u16,
        /// The allow-list entry that admits it.
        entry: String,
    },
}

impl Reason {
    /// A short label for counters, of few distinct values.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Scheme => "scheme",
            Self::NoHost => "no_host",
            Self::Name { .. } => "name",
            Self::Address { block, .. } => block.kind.label(),
            Self::Blocked { .. } => "blocked",
            Self::Port { .. } => "port",
        }
    }
}

impl Denied {
    fn new(target: impl Into<String>, reason: Reason) -> Self {
        Self {
            target: target.into(),
            reason,
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = &self.target;
        let entry = match &self.reason {
            Reason::Scheme => {
                return write!(
                    f,
                    "{target} is not a scheme that is called; use http or https"
                );
            }
            Reason::NoHost => return write!(f, "{target} URL without a host"),
            Reason::Blocked {
                address,
                block,
                literal,
            } => {
                if *literal {
                    write!(f, "{target}")?;
                } else {
                    write!(f, "{target} resolves to {address}, which")?;
                }
                return write!(
                    f,
                    " is in {block}, blocked by the operator (--blocked-cidrs)"
                );
            }
            Reason::Name { rule, entry } => {
                write!(f, "{target} {rule}")?;
                entry
            }
            Reason::Address {
                address,
                block,
                literal,
                entry,
            } => {
                if *literal {
                    write!(f, "{target} is {block}")?;
                } else {
                    write!(f, "{target} resolves to {address}, which is {block}")?;
                }
                entry
            }
            Reason::Port { port, entry } => {
                write!(f, "{target} on port {port}: not a port that may be reached")?;
                entry
            }
        };
        write!(
            f,
            "; the operator can admit it with {entry:?} in the egress allow-list ({ALLOW_SETTING}, or --allow of kubezap dev)"
        )
    }
}

impl std::error::Error for Denied {}

#[cfg(test)]
mod tests;
