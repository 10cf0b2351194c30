//! When another attempt starts.

use std::time::Duration;

use jiff::Timestamp;

use crate::run::reason;

/// How the delay grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backoff {
    /// Always the initial delay.
    Fixed,
    /// The initial delay times the number of failed attempts.
    Linear,
    /// The initial delay times `multiplier^(failed attempts - 1)`.
    #[default]
    Exponential,
}

/// A step's retry policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts beyond the first.
    pub max_retries: u32,
    /// How the delay grows.
    pub backoff: Backoff,
    /// Delay after the first failed attempt.
    pub initial_delay: Duration,
    /// The most a delay grows to.
    pub max_delay: Duration,
    /// Factor of exponential growth.
    pub multiplier: f64,
}

impl RetryPolicy {
    /// The delay after `failed` failed attempts (from 1), or `None` when there is no further attempt.
    ///
    /// `asked` is what the target's `Retry-After` asks for: the delay is at least that long, within `max_delay`.
    pub fn delay(&self, failed: u32, asked: Option<Duration>) -> Option<Duration> {
        if failed > self.max_retries {
            return None;
        }
        let seconds = self.initial_delay.as_secs_f64();
        let grown = match self.backoff {
            Backoff::Fixed => seconds,
            Backoff::Linear => seconds * f64::from(failed),
            Backoff::Exponential => {
                seconds * self.multiplier.powf(f64::from(failed.saturating_sub(1)))
            }
        };
        // A multiplier to a large power is infinite and not a Duration; the cap makes it one.
        let capped = if grown.is_finite() {
            grown.clamp(0.0, self.max_delay.as_secs_f64())
        } else {
            self.max_delay.as_secs_f64()
        };
        let own = Duration::from_secs_f64(capped);
        Some(own.max(asked.unwrap_or_default().min(self.max_delay)))
    }
}

/// Whether another attempt could end otherwise. Refusals of the guard, invalid requests and failed expressions cannot.
pub fn is_retryable(why: &str) -> bool {
    !matches!(
        why,
        reason::EGRESS_DENIED
            | reason::INVALID_REQUEST
            | reason::EVAL_ERROR
            | reason::RESULT_TOO_LARGE
            | reason::REFERENCE_NOT_FOUND
            | reason::MOCK_UNMATCHED
    )
}

/// Reads `Retry-After` (RFC 9110, section 10.2.3): whole seconds, or a date, from which it gives the time until then.
pub fn retry_after(headers: &[(String, String)], now: Timestamp) -> Option<Duration> {
    let (_, value) = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
    let value = value.trim();
    match value.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
            Duration::try_from(date.duration_since(now)).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(backoff: Backoff) -> RetryPolicy {
        RetryPolicy {
            max_retries: 4,
            backoff,
            initial_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(7),
            multiplier: 2.0,
        }
    }

    #[test]
    fn delays_grow_as_the_policy_says_and_are_capped() {
        for (backoff, seconds) in [
            (Backoff::Fixed, [2, 2, 2, 2]),
            (Backoff::Linear, [2, 4, 6, 7]),
            (Backoff::Exponential, [2, 4, 7, 7]),
        ] {
            let delays: Vec<_> = (1..=4)
                .map(|failed| policy(backoff).delay(failed, None).unwrap().as_secs())
                .collect();
            assert_eq!(delays, seconds, "{backoff:?}");
        }
    }

    #[test]
    fn the_last_attempt_has_no_delay_after_it() {
        assert_eq!(policy(Backoff::Fixed).delay(5, None), None);
    }

    #[test]
    fn an_absurd_multiplier_is_capped() {
        let absurd = RetryPolicy {
            max_retries: u32::MAX,
            multiplier: f64::MAX,
            ..policy(Backoff::Exponential)
        };
        assert_eq!(absurd.delay(1_000_000, None), Some(Duration::from_secs(7)));
        let nonsense = RetryPolicy {
            multiplier: f64::NAN,
            ..absurd
        };
        assert_eq!(nonsense.delay(2, None), Some(Duration::from_secs(7)));
    }

    #[test]
    fn retry_after_lengthens_a_delay_within_the_cap() {
        let policy = policy(Backoff::Fixed);
        assert_eq!(
            policy.delay(1, Some(Duration::from_secs(5))),
            Some(Duration::from_secs(5))
        );
        assert_eq!(
            policy.delay(1, Some(Duration::from_secs(600))),
            Some(Duration::from_secs(7))
        );
        assert_eq!(
            policy.delay(1, Some(Duration::from_secs(1))),
            Some(Duration::from_secs(2))
        );
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "2026-12-01T08:00:00Z".parse().unwrap();
        for (value, seconds) in [
            (" 5 ", Some(5)),
            ("0", Some(0)),
            ("Tue, 01 Dec 2026 08:01:30 GMT", Some(90)),
            ("Tue, 01 Dec 2026 07:59:00 GMT", None),
            ("soon", None),
            ("-1", None),
            ("1.5", None),
        ] {
            let headers = [("Retry-After".to_owned(), value.to_owned())];
            assert_eq!(
                retry_after(&headers, now),
                seconds.map(Duration::from_secs),
                "{value}"
            );
        }
        assert_eq!(retry_after(&[], now), None);
    }
}
