//! A trigger and an event give a run request: its name, labels and data.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::driver::slot_of;
use crate::event::{Encoding, Event, Source};

mod redact;

pub use redact::{REDACTED, redact};

/// The most bytes of a body as a run stores it, base64 counted. A larger one is refused by its source, never cut.
pub const MAX_BODY_BYTES: usize = 512 * 1024;

/// The most characters of a run's name, and of a label's value.
const MAX_NAME: usize = 63;

/// The most characters of an id that goes into a name as it is.
const MAX_ID: usize = 40;

/// Label with the name of the Trigger that made a run.
const LABEL_TRIGGER: &str = "kubezap.io/trigger";
/// Label with that Trigger's type.
const LABEL_TRIGGER_TYPE: &str = "kubezap.io/trigger-type";
/// Label with the name of the Flow.
const LABEL_FLOW: &str = "kubezap.io/flow";
/// Label with the share of runs that an owner holds.
const LABEL_SLOT: &str = "kubezap.io/slot";
/// Annotation with the hash of the event.
const ANNOTATION_EVENT_HASH: &str = "kubezap.io/event-hash";

/// What the engine needs to know of a Trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid; goes into every hash.
    pub uid: String,
    /// Its type, such as `webhook`.
    pub kind: String,
    /// Its Flow; `None` with an `action`.
    pub flow: Option<String>,
}

/// A FlowRun to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// RFC 1123, at most 63 characters.
    pub name: String,
    /// The trigger's, its kind, the flow's and the slot's.
    pub labels: BTreeMap<String, String>,
    /// `kubezap.io/event-hash`.
    pub annotations: BTreeMap<String, String>,
    /// What fired it, redacted.
    pub event: Arc<Event>,
}

/// What a create that was answered AlreadyExists means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The run exists for this very event: the create has succeeded.
    Same,
    /// Another event had this name first; create the run under this one.
    Next(String),
}

impl Trigger {
    /// Makes the run that an event asks for. The event comes redacted, see [`redact()`].
    ///
    /// `id` tells the trigger's events apart and becomes the end of the run's name. Sources without a position of their
    /// own, such as a webhook, pass a time-ordered id; others pass what names the event's place in its source, so that a
    /// redelivered event makes the same name. It is `[a-z0-9-]`, at most 40 characters; any other is hashed.
    pub fn admit(&self, event: Event, id: &str) -> RunRequest {
        let mut labels = BTreeMap::from([
            (LABEL_TRIGGER.to_owned(), label_value(&self.name)),
            (LABEL_TRIGGER_TYPE.to_owned(), label_value(&self.kind)),
            (
                LABEL_SLOT.to_owned(),
                slot_of(&self.namespace, &self.name).to_string(),
            ),
        ]);
        if let Some(flow) = &self.flow {
            labels.insert(LABEL_FLOW.to_owned(), label_value(flow));
        }
        RunRequest {
            name: self.run_name(id),
            labels,
            annotations: BTreeMap::from([(
                ANNOTATION_EVENT_HASH.to_owned(),
                self.event_hash(&event),
            )]),
            event: Arc::new(event),
        }
    }

    fn run_name(&self, id: &str) -> String {
        let plain = !id.is_empty()
            && id.len() <= MAX_ID
            && id
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && id.ends_with(|c: char| c.is_ascii_alphanumeric());
        let id = if plain {
            id.to_owned()
        } else {
            hash([self.uid.as_str(), id], 20)
        };
        let room = MAX_NAME - id.len() - 1;
        // A dot is fine in a Trigger's name and not in a label of a host name, which some consumers make of a run's name.
        let prefix = if self.name.len() <= room && !self.name.contains('.') {
            self.name.clone()
        } else {
            let end = hash([self.uid.as_str(), self.name.as_str()], 8);
            let start = self.name.replace('.', "-");
            format!("{}-{end}", cut(&start, room - end.len() - 1))
        };
        format!("{prefix}-{id}")
    }

    /// Headers are left out: brokers and proxies change them when they deliver again.
    fn event_hash(&self, event: &Event) -> String {
        let Event {
            source,
            method,
            path,
            headers: _,
            topic,
            partition,
            offset,
            key,
            key_encoding,
            scheduled_time,
            body,
            body_encoding,
            content_type,
            event_type,
            resource_name,
            resource_namespace,
            resource_api_version,
            resource_kind,
        } = event;
        let source = match source {
            Source::Webhook => "webhook",
            Source::Cron => "cron",
            Source::Kafka => "kafka",
            Source::KubernetesEvent => "kubernetes-event",
            Source::Plugin => "plugin",
            Source::Amqp => "amqp",
            Source::Nats => "nats",
            Source::Manual => "manual",
        };
        let encoding = match body_encoding {
            Encoding::Utf8 => "utf8",
            Encoding::Base64 => "base64",
        };
        hash(
            [
                self.uid.as_str(),
                source,
                method,
                path,
                topic,
                partition,
                offset,
                key,
                key_encoding,
                scheduled_time,
                body,
                encoding,
                content_type,
                event_type,
                resource_name,
                resource_namespace,
                resource_api_version,
                resource_kind,
            ],
            32,
        )
    }
}

/// Decides what to do when a create was answered AlreadyExists.
///
/// `existing_hash` is the annotation `kubezap.io/event-hash` of the run that has the name; `n` counts the names tried
/// for this request, the next one included, so it begins at 2.
pub fn resolve_existing(request: &RunRequest, existing_hash: Option<&str>, n: u32) -> Existing {
    let ours = request
        .annotations
        .get(ANNOTATION_EVENT_HASH)
        .map(String::as_str);
    if ours.is_some() && ours == existing_hash {
        return Existing::Same;
    }
    let end = format!("-{n}");
    if request.name.len() + end.len() <= MAX_NAME {
        return Existing::Next(format!("{}{end}", request.name));
    }
    let middle = hash([request.name.as_str()], 8);
    let room = MAX_NAME - end.len() - middle.len() - 1;
    Existing::Next(format!("{}-{middle}{end}", cut(&request.name, room)))
}

/// The value of a label that stands for a name: the name itself, or its beginning and a hash when it is longer than a
/// label's value may be. Selectors are made with it, so it depends on the name alone.
pub fn label_value(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let end = hash([name], 8);
    format!("{}-{end}", cut(name, MAX_NAME - end.len() - 1))
}

/// Cuts a text at a character, so that it ends in a letter or digit.
fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// Hashes texts, each preceded by its length, to `digits` hexadecimal digits.
fn hash<'a>(texts: impl IntoIterator<Item = &'a str>, digits: usize) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text);
    }
    let mut digest = hex::encode(hasher.finalize());
    digest.truncate(digits);
    digest
}

#[cfg(test)]
mod tests;
