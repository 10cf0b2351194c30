//! Labels and annotations that KubeZap sets and reads.

/// Label: name of the Trigger that made a FlowRun, or whose action a ControllerRevision holds.
pub const LABEL_TRIGGER: &str = "kubezap.io/trigger";
/// Label: type of the Trigger that made a FlowRun.
pub const LABEL_TRIGGER_TYPE: &str = "kubezap.io/trigger-type";
/// Label: name of the Flow of a FlowRun or of a ControllerRevision.
pub const LABEL_FLOW: &str = "kubezap.io/flow";
/// Label: share of the runs that a FlowRun belongs to, in decimal.
pub const LABEL_SLOT: &str = "kubezap.io/slot";
/// Label: part of KubeZap that an object is for.
pub const LABEL_COMPONENT: &str = "kubezap.io/component";

/// Annotation: `true` cancels a FlowRun.
pub const ANNOTATION_CANCEL: &str = "kubezap.io/cancel";
/// Annotation: `true` keeps a finished FlowRun from being collected.
pub const ANNOTATION_RETAIN: &str = "kubezap.io/retain";
/// Annotation: hash of the event that a FlowRun was made for.
pub const ANNOTATION_EVENT_HASH: &str = "kubezap.io/event-hash";
/// Annotation: W3C trace context that a FlowRun continues.
pub const ANNOTATION_TRACEPARENT: &str = "kubezap.io/traceparent";
/// Annotation of a Trigger with an action: Secret with certificates that the call trusts.
pub const ANNOTATION_TLS_CA_SECRET: &str = "kubezap.io/tls-ca-secret";
/// Annotation of a Trigger with an action: Secret with the certificate that the call presents.
pub const ANNOTATION_TLS_CLIENT_CERT_SECRET: &str = "kubezap.io/tls-client-cert-secret";
/// Annotation of a Trigger with an action: refused; certificates are always checked.
pub const ANNOTATION_TLS_INSECURE_SKIP_VERIFY: &str = "kubezap.io/tls-insecure-skip-verify";
