//! The formats of strings that are checked.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A format that a schema names. Formats that are not listed are not checked, as on the real server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Int32,
    Int64,
    Byte,
    Date,
    DateTime,
    Ipv4,
    Ipv6,
    Uuid,
}

impl Format {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "byte" => Self::Byte,
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "uuid" => Self::Uuid,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Byte => "byte",
            Self::Date => "date",
            Self::DateTime => "date-time",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Uuid => "uuid",
        }
    }

    /// Whether a string has this format.
    pub(crate) fn matches(self, text: &str) -> bool {
        match self {
            Self::Int32 | Self::Int64 => true,
            Self::Byte => STANDARD.decode(text).is_ok(),
            Self::Date => text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10,
            Self::DateTime => is_date_time(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Uuid => uuid::Uuid::parse_str(text).is_ok(),
        }
    }
}

/// RFC 3339 as the real server reads it: `T` between date and time, and a zone.
fn is_date_time(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    upper.as_bytes().get(10) == Some(&b'T') && upper.parse::<jiff::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_date_a_time_and_a_zone() {
        for good in ["2026-12-01T04:00:00Z", "2026-12-01T04:00:00.123456+01:00"] {
            assert!(Format::DateTime.matches(good), "{good}");
        }
        for bad in [
            "",
            "2026-12-01",
            "2026-12-01T04:00:00",
            "2026-13-01T04:00:00Z",
            "now",
        ] {
            assert!(!Format::DateTime.matches(bad), "{bad}");
        }
    }
}
