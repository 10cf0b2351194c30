//! Condition types and reasons as constants, and the one way to set a condition.

use jiff::{Timestamp, Unit};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Every kind but FlowRun: it can be used.
pub const READY: &str = "Ready";
/// Trigger: always the same status as [`READY`].
pub const ACCEPTED: &str = "Accepted";
/// Something in the spec has no effect; True is bad.
pub const DEGRADED: &str = "Degraded";
/// Trigger: the Integration it names is missing or of another type; True is bad.
pub const PLUGIN_INTEGRATION_INVALID: &str = "PluginIntegrationInvalid";
/// Trigger: a Secret or key it names is missing; True is bad.
pub const CREDENTIAL_RESOLUTION_FAILED: &str = "CredentialResolutionFailed";
/// Integration: its gateway runs.
pub const GATEWAY_AVAILABLE: &str = "GatewayAvailable";
/// FlowRun: True or False once it has ended, Unknown before.
pub const SUCCEEDED: &str = "Succeeded";
/// FlowRun: at least one step has started and it has not ended.
pub const RUNNING: &str = "Running";

/// The words of `reason`. Those of a FlowRun are in [`kubezap_engine::run::reason`].
pub mod reason {
    /// A Trigger that is served.
    pub const TRIGGER_READY: &str = "TriggerReady";
    /// A Trigger with `enabled: false`.
    pub const DISABLED: &str = "Disabled";
    /// A Flow that can run.
    pub const FLOW_READY: &str = "FlowReady";
    /// An Integration that can be used.
    pub const INTEGRATION_READY: &str = "IntegrationReady";
    /// The spec cannot be carried out as it stands; the message names the path.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The spec uses something that this version cannot do; the message names the path.
    pub const NOT_YET_SUPPORTED: &str = "NotYetSupported";
    /// A block beside the one that `type` names.
    pub const UNUSED_BLOCK: &str = "UnusedBlock";
    /// A field that is taken in and has no effect.
    pub const NO_EFFECT: &str = "NoEffect";
    /// Everything in the spec is in effect.
    pub const IN_EFFECT: &str = "InEffect";
    /// An older Trigger of the namespace has the path.
    pub const PATH_CONFLICT: &str = "PathConflict";
    /// The Flow that a Trigger names does not exist.
    pub const FLOW_NOT_FOUND: &str = "FlowNotFound";
    /// The Flow that a Trigger names cannot run.
    pub const FLOW_NOT_READY: &str = "FlowNotReady";
    /// A Secret that is named does not exist.
    pub const SECRET_NOT_FOUND: &str = "SecretNotFound";
    /// A Secret that is named lacks the key.
    pub const SECRET_MISSING_KEY: &str = "SecretMissingKey";
    /// A WebhookGatewayConfig without `tls`.
    pub const NO_TLS_CONFIGURED: &str = "NoTLSConfigured";
    /// A WebhookGatewayConfig whose certificates are there.
    pub const WEBHOOK_GATEWAY_CONFIG_READY: &str = "WebhookGatewayConfigReady";
    /// The Secret with the server's certificate does not exist, or none is named beside a client CA.
    pub const SERVER_SECRET_NOT_FOUND: &str = "ServerSecretNotFound";
    /// It lacks tls.crt or tls.key.
    pub const SERVER_SECRET_MISSING_KEYS: &str = "ServerSecretMissingKeys";
    /// The Secret with the client CA does not exist.
    pub const CLIENT_CA_SECRET_NOT_FOUND: &str = "ClientCASecretNotFound";
    /// It lacks ca.crt.
    pub const CLIENT_CA_SECRET_MISSING_KEY: &str = "ClientCASecretMissingKey";
}

/// The most bytes of a message that [`set`] stores.
const MAX_MESSAGE: usize = 32 * 1024;

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It does.
    True,
    /// It does not.
    False,
    /// Not known yet.
    Unknown,
}

impl Status {
    /// The word in a condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// What is said of an object, apart from when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it holds.
    pub status: Status,
    /// A constant of [`reason`].
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// Sets the condition `type_`, adding it when it is missing, and says whether anything changed.
///
/// `lastTransitionTime` moves only when the status does; `observedGeneration` is always taken over. A message beyond 32 KiB is
/// cut with `...`.
pub fn set(
    conditions: &mut Vec<Condition>,
    type_: &str,
    verdict: &Verdict,
    observed_generation: Option<i64>,
    now: Timestamp,
) -> bool {
    let mut condition = Condition {
        type_: type_.to_owned(),
        status: verdict.status.as_str().to_owned(),
        reason: verdict.reason.to_owned(),
        message: cut(&verdict.message),
        observed_generation,
        // Stored in whole seconds: rounding here keeps a value equal to itself after a round trip.
        last_transition_time: Time(now.round(Unit::Second).unwrap_or(now)),
    };
    let Some(current) = conditions.iter_mut().find(|c| c.type_ == type_) else {
        conditions.push(condition);
        return true;
    };
    if current.status == condition.status {
        condition.last_transition_time = current.last_transition_time.clone();
    }
    if *current == condition {
        return false;
    }
    *current = condition;
    true
}

/// Removes the condition `type_` and says whether it was there.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

/// Finds the condition `type_`.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition `type_` is True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == "True")
}

fn cut(message: &str) -> String {
    if message.len() <= MAX_MESSAGE {
        return message.to_owned();
    }
    let mut end = MAX_MESSAGE - 3;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: Status, message: &str) -> Verdict {
        Verdict {
            status,
            reason: reason::FLOW_READY,
            message: message.to_owned(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn transition_time_moves_only_with_the_status() {
        let mut conditions = vec![];
        assert!(set(
            &mut conditions,
            READY,
            &ready(Status::True, "a"),
            Some(1),
            at(10)
        ));
        assert!(set(
            &mut conditions,
            READY,
            &ready(Status::True, "b"),
            Some(2),
            at(20)
        ));
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].message, "b");
        assert_eq!(conditions[0].observed_generation, Some(2));
        assert_eq!(conditions[0].last_transition_time, Time(at(10)));
        assert!(set(
            &mut conditions,
            READY,
            &ready(Status::False, "b"),
            Some(2),
            at(30)
        ));
        assert_eq!(conditions[0].last_transition_time, Time(at(30)));
    }

    #[test]
    fn setting_the_same_again_changes_nothing() {
        let mut conditions = vec![];
        set(
            &mut conditions,
            READY,
            &ready(Status::True, "a"),
            Some(1),
            at(10),
        );
        assert!(!set(
            &mut conditions,
            READY,
            &ready(Status::True, "a"),
            Some(1),
            at(99)
        ));
        assert!(is_true(&conditions, READY));
        assert!(remove(&mut conditions, READY));
        assert!(!remove(&mut conditions, READY));
    }

    #[test]
    fn a_stored_condition_equals_the_one_that_was_set() {
        let mut conditions = vec![];
        let now = "2026-12-01T10:00:00.987654321Z".parse().unwrap();
        set(
            &mut conditions,
            READY,
            &ready(Status::True, "a"),
            Some(1),
            now,
        );
        let stored = serde_json::to_string(&conditions).unwrap();
        let read: Vec<Condition> = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, conditions);
    }

    #[test]
    fn a_message_beyond_the_bound_is_cut() {
        let mut conditions = vec![];
        set(
            &mut conditions,
            READY,
            &ready(Status::False, &"é".repeat(40_000)),
            Some(1),
            at(0),
        );
        assert!(conditions[0].message.ends_with("é..."));
        assert!(conditions[0].message.len() <= MAX_MESSAGE);
    }
}
