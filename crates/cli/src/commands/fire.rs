//! `kubezap fire TRIGGER`: makes the FlowRun that an event would make, with the caller's own rights.

use std::io::Read;

use kube::api::PostParams;
use kube::{Api, ResourceExt};
use kubezap_api::flow_run::FlowRun;
use kubezap_api::lower;
use kubezap_api::trigger::Trigger;
use kubezap_chassis::args::KubeArgs;
use kubezap_engine::event::{Event, Source};
use kubezap_engine::trigger::MAX_BODY_BYTES;
use kubezap_gateway::webhook::time_ordered_id;
use uuid::Uuid;

use crate::failure::Failure;
use crate::output::{self, Format, Palette};

/// Fires a Trigger by hand.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The Trigger; its source may be disabled.
    trigger: String,
    /// The event's body: text, `@FILE`, or `-` for standard input.
    #[arg(short, long, value_name = "BODY|@FILE|-")]
    data: Option<String>,
    /// The body's media type.
    #[arg(long, default_value = "application/json")]
    content_type: String,
    /// Follows the run until it ends: 0 Succeeded, 1 Failed or Cancelled.
    #[arg(short, long)]
    wait: bool,
    /// Output format of the FlowRun that was made.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Makes the FlowRun and prints its name.
///
/// # Errors
/// A Trigger that does not exist, a body that cannot be read or is too large, or what the API server answers.
pub(crate) async fn run(args: Args, kube: &KubeArgs, palette: Palette) -> Result<(), Failure> {
    let Args {
        trigger,
        data,
        content_type,
        wait,
        output,
    } = args;
    let body = body(data.as_deref())?;
    let client = kube.connect().await?.client;
    let object = Api::<Trigger>::default_namespaced(client.clone())
        .get(&trigger)
        .await?;
    let event = Event {
        source: Source::Manual,
        content_type: if body.is_empty() {
            String::new()
        } else {
            content_type
        },
        body,
        ..Event::default()
    };
    let request = lower::trigger(&object)
        .trigger
        .admit(event, &time_ordered_id(Uuid::now_v7()));
    let runs = Api::<FlowRun>::default_namespaced(client);
    let run = runs
        .create(&PostParams::default(), &lower::flow_run(&request, &object))
        .await?;
    match output {
        Format::Json | Format::Yaml => output::structured(output, &run)?,
        Format::Table => output::line(format!(
            "flowrun.automation.kubezap.io/{} created",
            run.name_any()
        )),
        Format::Name => output::line(format!("flowrun.automation.kubezap.io/{}", run.name_any())),
    }
    if wait {
        super::watch::follow(
            runs,
            Some(&run.name_any()),
            output == Format::Json,
            palette,
            |_| true,
        )
        .await?;
    }
    Ok(())
}

fn body(data: Option<&str>) -> Result<String, Failure> {
    let body = match data {
        None => String::new(),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| {
                    Failure::Usage(format!("cannot read standard input as UTF-8 text: {error}"))
                })?;
            text
        }
        Some(data) => match data.strip_prefix('@') {
            Some(file) => std::fs::read_to_string(file).map_err(|error| {
                Failure::Usage(format!("cannot read {file} as UTF-8 text: {error}"))
            })?,
            None => data.to_owned(),
        },
    };
    if body.len() > MAX_BODY_BYTES {
        return Err(Failure::Usage(format!(
            "the body has {} bytes, the most is {MAX_BODY_BYTES}",
            body.len()
        )));
    }
    Ok(body)
}
