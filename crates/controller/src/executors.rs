//! The seam to whoever makes HTTP calls: the controller opens no connection to a step's target itself.

mod remote;

use futures::future::BoxFuture;
use kubezap_step_protocol::{ExecuteRequest, ExecuteResponse};
use tokio_util::sync::CancellationToken;

pub use remote::{RemoteExecutor, RemoteExecutorError, keep_reloading};

/// Makes calls for the Flows of every namespace.
pub trait Executors: Send + Sync {
    /// Makes one call with the executor of `namespace`.
    ///
    /// Ends soon after `cancel`, with whatever answer; the call's socket is closed then, and also when the future is
    /// dropped. The executor keeps the request's time limit.
    ///
    /// # Errors
    /// When there is no answer of the executor, told apart by whether the call may have been made.
    fn execute(
        &self,
        namespace: &str,
        request: ExecuteRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<ExecuteResponse, DispatchError>>;
}

/// Why an executor gave no answer. The texts are for people and hold nothing of the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// No executor took the call: it may be made again as if nothing had happened.
    #[error("no executor took the call: {0}")]
    NotDelivered(String),
    /// An executor may have made the call, and its answer is lost.
    #[error("the executor's answer was lost: {0}")]
    Lost(String),
}
