//! Durations as manifests spell them: Go's, and `d` for 24 hours.

use std::time::Duration;

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not of the form that is understood.
    #[error("'{0}' is not a duration such as 300ms, 30s, 1h30m or 2d")]
    Malformed(String),
    /// Below zero.
    #[error("'{0}' is negative")]
    Negative(String),
    /// Beyond what Go holds.
    #[error("'{0}' is longer than 106751d")]
    TooLong(String),
}

/// The most nanoseconds that Go's `time.Duration` holds.
const LIMIT: u128 = i64::MAX as u128;

/// Reads a duration: a sequence of decimal numbers, each with an optional fraction and a unit (`ns`, `us` or `µs`, `ms`, `s`,
/// `m`, `h`, `d`), as Go's `time.ParseDuration` does, and `d` for 24 hours. `0` needs no unit. Never panics.
///
/// # Errors
/// The text is malformed, negative, or longer than 2^63 - 1 nanoseconds.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(kubezap_api::duration::parse("1h30m"), Ok(Duration::from_secs(5400)));
/// ```
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let malformed = || DurationError::Malformed(shown(text));
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(malformed());
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (nanos, after) = segment(rest).ok_or_else(malformed)?;
        total = total.saturating_add(nanos);
        rest = after;
    }
    if negative && total > 0 {
        return Err(DurationError::Negative(shown(text)));
    }
    if total > LIMIT {
        return Err(DurationError::TooLong(shown(text)));
    }
    let seconds = u64::try_from(total / 1_000_000_000).map_err(|_| malformed())?;
    let nanos = u32::try_from(total % 1_000_000_000).map_err(|_| malformed())?;
    Ok(Duration::new(seconds, nanos))
}

/// Reads one number with its unit; gives its nanoseconds, saturated, and what follows.
fn segment(text: &str) -> Option<(u128, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => digits(after),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit = unit_nanos(unit)?;
    let mut nanos = number(whole).saturating_mul(unit);
    // Digits beyond the fifteenth are below a nanosecond for every unit.
    let mut scale: u128 = 1;
    let mut numerator: u128 = 0;
    for digit in fraction.bytes().take(15) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    nanos = nanos.saturating_add(numerator * unit / scale);
    Some((nanos, rest))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn number(digits: &str) -> u128 {
    digits.bytes().fold(0_u128, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u128::from(digit - b'0'))
    })
}

fn unit_nanos(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    })
}

/// The text as an error may quote it.
fn shown(text: &str) -> String {
    match text.char_indices().nth(64) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Writes a duration for people, in at most two units: `850ms`, `3.2s`, `2m5s`, `1h30m`, `2d3h`.
///
/// Rounds down, so that nothing is said to have taken longer than it did.
pub fn format(duration: Duration) -> String {
    let millis = duration.as_millis();
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if millis < 1000 {
        format!("{millis}ms")
    } else if seconds < 60 {
        format!("{seconds}.{}s", millis % 1000 / 100)
    } else if hours == 0 {
        two_units(minutes, "m", seconds % 60, "s")
    } else if days == 0 {
        two_units(hours, "h", minutes % 60, "m")
    } else {
        two_units(days, "d", hours % 24, "h")
    }
}

fn two_units(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests;
