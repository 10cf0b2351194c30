//! An event as a Trigger's source brought it, and as `FlowRun.spec.triggerData` stores it.

mod body;

pub use body::Body;
pub(crate) use body::{is_form, media_type};

use std::collections::BTreeMap;

/// Where an event came from; the value of `triggerData.source`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// An HTTP request to the webhook gateway.
    Webhook,
    /// A schedule's tick.
    Cron,
    /// A Kafka record.
    Kafka,
    /// A change of a Kubernetes object.
    KubernetesEvent,
    /// A plugin.
    Plugin,
    /// An AMQP message.
    Amqp,
    /// A NATS message.
    Nats,
    /// A person, through `kubezap fire` or a FlowRun written by hand.
    #[default]
    Manual,
}

/// How `body` is held in text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// The body is UTF-8 text, held as it is.
    #[default]
    Utf8,
    /// The body is binary, held as standard base64 (RFC 4648 section 4).
    Base64,
}

/// One inbound event. Scalars that do not apply to the source are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The kind of source.
    pub source: Source,
    /// HTTP method, upper case.
    pub method: String,
    /// Request path without the query.
    pub path: String,
    /// Header names in canonical form (`X-Github-Event`); several values of one name are joined with `, `.
    pub headers: BTreeMap<String, String>,
    /// Topic, queue or subject of a broker message.
    pub topic: String,
    /// Kafka partition, in decimal.
    pub partition: String,
    /// Kafka offset or stream sequence, in decimal.
    pub offset: String,
    /// Message key.
    pub key: String,
    /// How `key` is encoded: `utf8` or `base64`, empty without a key.
    pub key_encoding: String,
    /// The instant a schedule fired for, RFC 3339.
    pub scheduled_time: String,
    /// The body, as `body_encoding` says.
    pub body: String,
    /// How `body` is held.
    pub body_encoding: Encoding,
    /// The media type as it was sent.
    pub content_type: String,
    /// `ADDED`, `MODIFIED` or `DELETED` for a resource event.
    pub event_type: String,
    /// The object of a resource event.
    pub resource_name: String,
    /// Its namespace.
    pub resource_namespace: String,
    /// Its `apiVersion`.
    pub resource_api_version: String,
    /// Its kind.
    pub resource_kind: String,
}

impl Source {
    /// The word that `triggerData.source` holds.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Cron => "cron",
            Self::Kafka => "kafka",
            Self::KubernetesEvent => "kubernetes-event",
            Self::Plugin => "plugin",
            Self::Amqp => "amqp",
            Self::Nats => "nats",
            Self::Manual => "manual",
        }
    }
}

impl Encoding {
    /// The word that `triggerData.bodyEncoding` holds.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8",
            Self::Base64 => "base64",
        }
    }
}

impl Event {
    /// A header's value; names are compared without case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// A scalar by the name that `trigger.<name>` has for it; `None` when no event has such a field.
    pub fn scalar(&self, name: &str) -> Option<&str> {
        Some(match name {
            "body" => &self.body,
            "bodyEncoding" => self.body_encoding.as_str(),
            "contentType" => &self.content_type,
            "eventType" => &self.event_type,
            "key" => &self.key,
            "keyEncoding" => &self.key_encoding,
            "method" => &self.method,
            "offset" => &self.offset,
            "partition" => &self.partition,
            "path" => &self.path,
            "resourceAPIVersion" => &self.resource_api_version,
            "resourceKind" => &self.resource_kind,
            "resourceName" => &self.resource_name,
            "resourceNamespace" => &self.resource_namespace,
            "scheduledTime" => &self.scheduled_time,
            "source" => self.source.as_str(),
            "topic" => &self.topic,
            _ => return None,
        })
    }
}
