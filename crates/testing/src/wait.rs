//! Waiting on conditions with a deadline, instead of sleeping.

use std::future::Future;
use std::time::{Duration, Instant};

/// Asks again and again until the answer is `Some`.
///
/// # Panics
/// When the deadline passes, naming what was waited for.
pub async fn until<T, F: Future<Output = Option<T>>>(
    what: &str,
    deadline: Duration,
    mut ask: impl FnMut() -> F,
) -> T {
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(
            begin.elapsed() < deadline,
            "waited {deadline:?} in vain for {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
