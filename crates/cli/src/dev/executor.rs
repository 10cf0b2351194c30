//! The executor of `kubezap dev`: the same performer as in the cluster, without a network between.

use futures::future::BoxFuture;
use kubezap_controller::executors::{DispatchError, Executors};
use kubezap_executor::Performer;
use kubezap_step_protocol::{ExecuteRequest, ExecuteResponse};
use tokio_util::sync::CancellationToken;

/// Runs calls in this process.
pub(crate) struct InProcess(pub(crate) Performer);

impl Executors for InProcess {
    fn execute(
        &self,
        _namespace: &str,
        request: ExecuteRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<ExecuteResponse, DispatchError>> {
        Box::pin(async move { Ok(self.0.perform(request, cancel).await) })
    }
}
