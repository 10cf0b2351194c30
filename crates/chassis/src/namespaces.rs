//! Which namespaces a process works in: the flag and environment variable `WATCH_NAMESPACES`.

use std::collections::BTreeSet;

/// The namespaces a process works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// All that exist and will exist.
    All,
    /// These, sorted, at least one.
    Only(Vec<String>),
}

impl Namespaces {
    /// Reads the value of `WATCH_NAMESPACES`: empty is `own`, `a` or `a,b` are those, `*` is all.
    ///
    /// # Errors
    /// Names what is no namespace.
    pub fn parse(text: &str, own: &str) -> Result<Self, String> {
        let names: BTreeSet<&str> = text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        if names.is_empty() {
            return Ok(Self::Only(vec![own.to_owned()]));
        }
        if names.contains("*") {
            return if names.len() == 1 {
                Ok(Self::All)
            } else {
                Err("`*` means all namespaces and stands alone".to_owned())
            };
        }
        match names.iter().find(|name| !is_label(name)) {
            Some(name) => Err(format!("{name:?} is not the name of a namespace")),
            None => Ok(Self::Only(names.into_iter().map(str::to_owned).collect())),
        }
    }

    /// Whether `namespace` is one of them.
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|name| name == namespace),
        }
    }
}

/// RFC 1123 label.
fn is_label(name: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && bytes.first().copied().is_some_and(inner)
        && bytes.last().copied().is_some_and(inner)
        && bytes.iter().all(|&c| inner(c) || c == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(names: &[&str]) -> Namespaces {
        Namespaces::Only(names.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn watch_namespaces_is_read_as_before() {
        for (text, expected) in [
            ("", only(&["own"])),
            ("a", only(&["a"])),
            ("b, a,", only(&["a", "b"])),
            ("*", Namespaces::All),
        ] {
            assert_eq!(Namespaces::parse(text, "own"), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_namespace_is_named() {
        assert_eq!(
            Namespaces::parse("a,B", "own"),
            Err("\"B\" is not the name of a namespace".to_owned())
        );
        assert!(Namespaces::parse("a,*", "own").is_err());
    }
}
