//! `kubezap triggers`: the Triggers of a namespace.

use jiff::Timestamp;
use kube::ResourceExt;
use kubezap_api::trigger::Trigger;
use kubezap_chassis::args::{Connection, KubeArgs};

use crate::failure::Failure;
use crate::listing::{self, ListArgs};
use crate::run_view::age;

/// Lists Triggers.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    list: ListArgs,
}

/// Prints the Triggers.
///
/// # Errors
/// As the API server answers.
pub(crate) async fn run(args: Args, kube: &KubeArgs) -> Result<(), Failure> {
    let Args { list } = args;
    let Connection {
        client, namespace, ..
    } = kube.connect().await?;
    let triggers = listing::all(&listing::api::<Trigger>(
        client,
        list.all_namespaces,
        &namespace,
    ))
    .await?;
    let now = Timestamp::now();
    listing::print(
        &triggers,
        &list,
        &[
            "NAME",
            "TYPE",
            "FLOW",
            "READY",
            "LAST FIRED",
            "LAST RESULT",
            "AGE",
        ],
        |trigger| {
            let status = trigger.status.clone().unwrap_or_default();
            vec![
                trigger.name_any(),
                trigger.spec.type_.as_str().to_owned(),
                trigger
                    .spec
                    .flow_ref
                    .as_ref()
                    .map(|flow| flow.name.clone())
                    .unwrap_or_default(),
                listing::ready(&status.conditions),
                status
                    .last_triggered_time
                    .map(|time| age(Some(time.0), now))
                    .unwrap_or_default(),
                status
                    .last_result
                    .map(|result| result.as_str().to_owned())
                    .unwrap_or_default(),
                age(trigger.creation_timestamp().map(|time| time.0), now),
            ]
        },
    )
}
