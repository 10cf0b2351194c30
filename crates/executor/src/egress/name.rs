//! Names that are refused before any look-up: what only a private resolver, or the machine itself, would answer.

use std::fmt;

/// The rule that a name breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// No dot in it: completed by a search domain, which here is the cluster's.
    SingleLabel,
    /// The machine itself.
    Localhost,
    /// A suffix that is never public.
    Private(&'static str),
    /// The cluster's own DNS.
    Cluster,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SingleLabel => {
                f.write_str("is a single label, which only a search domain completes")
            }
            Self::Localhost => f.write_str("is the machine itself"),
            Self::Private(suffix) => write!(f, "ends in {suffix}, which is never a public name"),
            Self::Cluster => f.write_str("is a name of the cluster"),
        }
    }
}

/// `.local` is link-local by RFC 6762, `.internal` reserved by ICANN for private use and home of cloud metadata names,
/// `.svc` what is left of a Kubernetes service name, `.localdomain` what distributions call themselves.
const PRIVATE: [&str; 4] = [".local", ".internal", ".svc", ".localdomain"];

/// The rule that refuses `name` (lower case, no trailing dot), if one does.
pub(super) fn refused(name: &str, cluster_domain: &str) -> Option<Rule> {
    if name == "localhost" || name.ends_with(".localhost") {
        return Some(Rule::Localhost);
    }
    if !name.contains('.') {
        return Some(Rule::SingleLabel);
    }
    let cluster = cluster_domain.trim_matches('.');
    if !cluster.is_empty()
        && name
            .strip_suffix(cluster)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    {
        return Some(Rule::Cluster);
    }
    PRIVATE
        .into_iter()
        .find(|suffix| name.ends_with(suffix))
        .map(Rule::Private)
}
