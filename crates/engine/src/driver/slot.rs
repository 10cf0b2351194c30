//! Shares of the runs.

use sha2::{Digest, Sha256};

use crate::run::RunSpec;

/// A share of the runs: `hash(namespace/trigger, or flow) mod 64`; the label `kubezap.io/slot`.
pub type Slot = u8;

/// How many slots there are.
pub const SLOTS: u8 = 64;

/// The slot of all runs of a Trigger, or of a Flow for runs that no Trigger made: the first two bytes of
/// `sha256("<namespace>/<name>")`, big-endian, modulo [`SLOTS`]. Stored in labels, so it never changes.
pub fn slot_of(namespace: &str, name: &str) -> Slot {
    let mut hasher = Sha256::new();
    hasher.update(namespace);
    hasher.update("/");
    hasher.update(name);
    let digest = hasher.finalize();
    let number = u16::from_be_bytes([digest[0], digest[1]]) % u16::from(SLOTS);
    number as Slot
}

/// The slot of a run that carries no label.
pub(super) fn slot_of_run(spec: &RunSpec) -> Slot {
    let name = spec
        .trigger
        .as_ref()
        .map_or(spec.flow.as_str(), |trigger| trigger.name.as_str());
    slot_of(&spec.namespace, name)
}
