//! `kubezap flows`: the Flows of a namespace.

use jiff::Timestamp;
use kube::ResourceExt;
use kubezap_api::flow::Flow;
use kubezap_chassis::args::{Connection, KubeArgs};

use crate::failure::Failure;
use crate::listing::{self, ListArgs};
use crate::run_view::age;

/// Lists Flows.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    list: ListArgs,
}

/// Prints the Flows.
///
/// # Errors
/// As the API server answers.
pub(crate) async fn run(args: Args, kube: &KubeArgs) -> Result<(), Failure> {
    let Args { list } = args;
    let Connection {
        client, namespace, ..
    } = kube.connect().await?;
    let flows = listing::all(&listing::api::<Flow>(
        client,
        list.all_namespaces,
        &namespace,
    ))
    .await?;
    let now = Timestamp::now();
    listing::print(
        &flows,
        &list,
        &["NAME", "STEPS", "READY", "RUNS", "LAST RESULT", "AGE"],
        |flow| {
            let status = flow.status.clone().unwrap_or_default();
            vec![
                flow.name_any(),
                flow.spec.steps.len().to_string(),
                listing::ready(&status.conditions),
                status.execution_count.unwrap_or_default().to_string(),
                status.last_result.unwrap_or_default(),
                age(flow.creation_timestamp().map(|time| time.0), now),
            ]
        },
    )
}
