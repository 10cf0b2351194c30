//! When another attempt starts.

use std::time::Duration;

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
    /// Factor of exponential growth, at least 1.
    pub multiplier: f64,
}
