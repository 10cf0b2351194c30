//! The end of a process, from a signal to every task.

use tokio_util::sync::CancellationToken;

/// Gives a token that is cancelled by the first SIGTERM or SIGINT.
///
/// A second signal of the same kind does nothing: what is in flight is bounded by deadlines of its own, and whoever cannot
/// wait has SIGKILL. Needs a tokio runtime.
///
/// # Errors
/// When the operating system refuses a signal handler.
pub fn on_signal() -> std::io::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let shutdown = token.clone();
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "shutting down");
        shutdown.cancel();
    });
    Ok(token)
}
