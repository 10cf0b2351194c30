//! What KubeZap relies on of a Kubernetes API: named behaviours that hold on any server.
//!
//! The same list runs against the local API and against a real kube-apiserver. A case gets a namespace of its own; the kinds of
//! KubeZap are installed.
//!
//! # What the local API does otherwise than the real server
//! - Server-side apply is refused with 415; there are no `managedFields`.
//! - A strategic merge patch is taken as a merge patch: lists are replaced, directives such as `$patch` are refused.
//! - Garbage collection and the removal of a namespace's content happen with the deletion, not a moment later.
//! - A request body is JSON, or protobuf of a Namespace, Secret or ConfigMap; an answer is JSON. Duplicate fields of a body are not
//!   reported.
//! - A PUT never creates (the real server lets Leases and Events be created by it).
//! - `messageExpression` and `optionalOldSelf` of a validation rule are not evaluated; the cost of rules is bounded otherwise.
//! - Built-in kinds are checked lightly: names, keys, types, immutable Secrets and ConfigMaps, Leases, ControllerRevisions.
//! - A type error in a built-in kind or in metadata names the field, not the Go type in full.
//! - There are no CustomResourceDefinition objects, no authorization, no admission webhooks, no service accounts and no other kinds.
//! - Of one kind, the last 5,000 changes are kept, whatever their age.

mod create;
mod defaults;
mod delete;
mod discovery;
mod list;
mod patch;
mod rules;
mod scene;
mod status;
mod table;
mod update;
mod watch;

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use futures::future::BoxFuture;

pub use self::scene::Scene;

/// One behaviour.
#[derive(Clone, Copy)]
pub struct Case {
    /// What it is about: `watch`, `delete`.
    pub area: &'static str,
    /// The claim.
    pub name: &'static str,
    run: for<'s> fn(&'s Scene) -> BoxFuture<'s, ()>,
}

impl Case {
    /// Tries the behaviour on a server.
    ///
    /// # Errors
    /// With what was seen instead.
    pub async fn run(&self, client: kube::Client) -> Result<(), String> {
        let scene = Scene::new(client).await;
        let outcome = AssertUnwindSafe((self.run)(&scene)).catch_unwind().await;
        scene.strike().await;
        outcome.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "it panicked without a text".to_owned())
        })
    }
}

/// Makes the [`Case`]s of an area from functions: their names are the claims.
macro_rules! cases {
    ($area:literal: $($name:ident),+ $(,)?) => {
        /// The cases of this area.
        pub(super) fn cases() -> Vec<$crate::contract::Case> {
            vec![$($crate::contract::Case {
                area: $area,
                name: stringify!($name),
                run: |scene| Box::pin($name(scene)),
            }),+]
        }
    };
}
use cases;

/// Every case, by area.
pub fn all() -> Vec<Case> {
    [
        discovery::cases(),
        list::cases(),
        watch::cases(),
        create::cases(),
        update::cases(),
        patch::cases(),
        delete::cases(),
        status::cases(),
        defaults::cases(),
        rules::cases(),
        table::cases(),
    ]
    .concat()
}
