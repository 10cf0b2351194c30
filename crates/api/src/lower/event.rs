//! An event, to and from `spec.triggerData`.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubezap_engine::event::{Encoding, Event, Source};

use crate::flow_run::{BodyEncoding, TriggerData};

/// Reads an event as it is stored.
pub fn event(data: &TriggerData) -> Event {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    Event {
        source: source(data.source.as_deref().unwrap_or_default()),
        method: text(&data.method),
        path: text(&data.path),
        headers: data.headers.clone(),
        topic: text(&data.topic),
        partition: data.partition.map(|n| n.to_string()).unwrap_or_default(),
        offset: data.offset.map(|n| n.to_string()).unwrap_or_default(),
        key: text(&data.key),
        key_encoding: text(&data.key_encoding),
        scheduled_time: data
            .scheduled_time
            .as_ref()
            .map(|time| time.0.to_string())
            .unwrap_or_default(),
        body: text(&data.body),
        body_encoding: match data.body_encoding.unwrap_or_default() {
            BodyEncoding::Utf8 => Encoding::Utf8,
            BodyEncoding::Base64 => Encoding::Base64,
        },
        content_type: text(&data.content_type),
        event_type: text(&data.event_type),
        resource_name: text(&data.resource_name),
        resource_namespace: text(&data.resource_namespace),
        resource_api_version: text(&data.resource_api_version),
        resource_kind: text(&data.resource_kind),
    }
}

/// Stores an event. What is empty is left out.
///
/// [`event`] gives the same event back as long as partition, offset and scheduled time are what [`Event`] says they are; the
/// scheduled time keeps whole seconds.
pub fn trigger_data(event: &Event) -> TriggerData {
    let text = |field: &str| (!field.is_empty()).then(|| field.to_owned());
    TriggerData {
        source: Some(event.source.as_str().to_owned()),
        method: text(&event.method),
        path: text(&event.path),
        headers: event.headers.clone(),
        topic: text(&event.topic),
        partition: event.partition.parse().ok(),
        offset: event.offset.parse().ok(),
        key: text(&event.key),
        key_encoding: text(&event.key_encoding),
        scheduled_time: event.scheduled_time.parse::<Timestamp>().ok().map(Time),
        body: text(&event.body),
        body_encoding: match (event.body_encoding, event.body.is_empty()) {
            (Encoding::Utf8, true) => None,
            (Encoding::Utf8, false) => Some(BodyEncoding::Utf8),
            (Encoding::Base64, _) => Some(BodyEncoding::Base64),
        },
        body_truncated: None,
        content_type: text(&event.content_type),
        event_type: text(&event.event_type),
        resource_name: text(&event.resource_name),
        resource_namespace: text(&event.resource_namespace),
        resource_api_version: text(&event.resource_api_version),
        resource_kind: text(&event.resource_kind),
    }
}

/// A word that is not ours is a plugin's own.
fn source(word: &str) -> Source {
    match word {
        "webhook" => Source::Webhook,
        "cron" => Source::Cron,
        "kafka" => Source::Kafka,
        "kubernetes-event" => Source::KubernetesEvent,
        "amqp" => Source::Amqp,
        "nats" => Source::Nats,
        "manual" | "" => Source::Manual,
        _ => Source::Plugin,
    }
}
