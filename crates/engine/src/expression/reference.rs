//! References such as `trigger.body.items.0.sku` or `secrets.crm.token`.

use crate::effect::KeyRef;

/// What a template or CEL expression refers to, for validation, inferred dependencies and reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// Something of the event; the path after `trigger.`.
    Trigger(String),
    /// Something of a step. The name is as written: hyphens may stand as underscores.
    Step {
        /// The step as written.
        step: String,
        /// `results.<result>`, `status`, `message` or `attempts`.
        field: String,
    },
    /// A parameter.
    Param(String),
    /// Something of the run itself.
    Run(String),
    /// A key of a Secret.
    Secret(KeyRef),
    /// A key of a ConfigMap.
    ConfigMap(KeyRef),
}
