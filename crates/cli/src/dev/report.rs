//! What `kubezap dev` tells its user: addresses, webhook URLs, mistakes in manifests with file and line, and runs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use kubezap_api::flow::Flow;
use kubezap_api::flow_run::FlowRun;
use kubezap_api::trigger::Trigger;
use kubezap_gateway::webhook::{Routes, ServedRoute};
use serde_json::json;
use tokio::sync::mpsc;

use super::apply::{Applier, ObjectKey, Pass};
use super::mocking::Mocking;
use crate::failure::Failure;
use crate::follow::{Follower, Style};
use crate::manifest::Complaint;
use crate::output::{self, Palette};

/// What the user edits while it runs.
pub(crate) struct Sources {
    /// Brings manifests to the API.
    pub(crate) applier: Applier,
    /// The mocks beside them.
    pub(crate) mocking: Mocking,
    /// Tells that a file changed.
    pub(crate) files: mpsc::Receiver<()>,
}

/// Prints.
pub(crate) struct Report {
    style: Style,
    palette: Palette,
    follower: Follower,
    /// The complaint of each object that is not Ready, as it was last told.
    told: BTreeMap<ObjectKey, String>,
}

impl Report {
    /// Nothing is told yet.
    pub(crate) fn new(json: bool, palette: Palette) -> Self {
        let style = Style::detect(json);
        Self {
            style,
            palette,
            follower: Follower::new(style, palette),
            told: BTreeMap::new(),
        }
    }

    /// Tells where everything listens.
    pub(crate) fn listening(&self, gateway: SocketAddr, api: SocketAddr, kubeconfig: &Path) {
        if self.style == Style::Json {
            output::line(json!({
                "type": "listening",
                "gateway": format!("http://{gateway}"),
                "api": format!("https://{api}"),
                "kubeconfig": kubeconfig,
            }));
            return;
        }
        output::line(format!("gateway     http://{gateway}"));
        output::line(format!("API         https://{api}"));
        output::line(format!("kubeconfig  {}", kubeconfig.display()));
    }

    /// Tells what a pass over the files did.
    pub(crate) fn pass(&self, pass: &Pass) {
        for (keys, verb) in [(&pass.applied, "applied"), (&pass.deleted, "deleted")] {
            for key in keys {
                if self.style == Style::Json {
                    output::line(
                        json!({"type": verb, "kind": key.kind, "namespace": key.namespace, "name": key.name}),
                    );
                } else {
                    self.follower.line(
                        self.palette
                            .faint(&format!("{verb}     {}/{}", key.kind, key.name)),
                    );
                }
            }
        }
        for complaint in &pass.complaints {
            self.complain(complaint);
        }
    }

    /// Tells of a mistake, with its file and line.
    pub(crate) fn complain(&self, complaint: &Complaint) {
        if self.style == Style::Json {
            output::line(
                json!({"type": "complaint", "file": complaint.file, "line": complaint.line, "message": complaint.message}),
            );
        } else {
            self.follower.line(self.palette.bad(&complaint.to_string()));
        }
    }
}

impl Report {
    /// Follows files, conditions, routes and runs; returns only with an error.
    pub(crate) async fn follow(
        &mut self,
        client: &Client,
        routes: &Routes,
        mut requests: mpsc::UnboundedReceiver<String>,
        sources: Sources,
        gateway: SocketAddr,
    ) -> Result<(), Failure> {
        let Sources {
            mut applier,
            mocking,
            mut files,
        } = sources;
        let mut changes = routes.changes();
        let mut runs = watcher(
            Api::<FlowRun>::all(client.clone()),
            watcher::Config::default(),
        )
        .default_backoff()
        .boxed();
        let mut flows = watcher(Api::<Flow>::all(client.clone()), watcher::Config::default())
            .default_backoff()
            .applied_objects()
            .boxed();
        let mut triggers = watcher(
            Api::<Trigger>::all(client.clone()),
            watcher::Config::default(),
        )
        .default_backoff()
        .applied_objects()
        .boxed();
        loop {
            tokio::select! {
                // A watch that breaks is taken up again by the watcher itself.
                event = runs.next() => if let Some(Ok(event)) = event { self.run(event) },
                flow = flows.try_next() => if let Ok(Some(flow)) = flow {
                    let conditions = flow.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
                    self.conditions("Flow", &flow, conditions, &applier);
                },
                trigger = triggers.try_next() => if let Ok(Some(trigger)) = trigger {
                    let conditions = trigger.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
                    self.conditions("Trigger", &trigger, conditions, &applier);
                },
                Some(served) = changes.next() => self.routes(&served, gateway),
                Some(request) = requests.recv() => self.request(&request),
                Some(()) = files.recv() => {
                    if let Err(complaint) = mocking.reload() {
                        self.complain(&complaint);
                    }
                    match applier.pass().await {
                        Ok(pass) => self.pass(&pass),
                        Err(complaint) => self.complain(&complaint),
                    }
                }
            }
        }
    }

    fn run(&mut self, event: watcher::Event<FlowRun>) {
        match event {
            watcher::Event::Apply(run) | watcher::Event::InitApply(run) => self.follower.show(&run),
            watcher::Event::Delete(run) => self.follower.forget(&run.uid().unwrap_or_default()),
            watcher::Event::Init | watcher::Event::InitDone => {}
        }
    }

    /// Tells of a mocked request and its answer.
    fn request(&self, request: &str) {
        if self.style == Style::Json {
            output::line(json!({"type": "request", "request": request}));
        } else {
            self.follower
                .line(self.palette.faint(&format!("request     {request}")));
        }
    }

    /// Tells every webhook that is served now.
    fn routes(&self, served: &[ServedRoute], gateway: SocketAddr) {
        for route in served {
            let url = format!("http://{gateway}{}", route.path);
            if self.style == Style::Json {
                output::line(json!({
                    "type": "route", "namespace": route.namespace, "trigger": route.trigger, "method": route.method, "url": url,
                }));
            } else {
                self.follower.line(format!(
                    "{:<10}  {url}  (Trigger {})",
                    route.method, route.trigger
                ));
            }
        }
    }

    /// Tells what keeps an object from being Ready, and what of it has no effect, once each.
    fn conditions<K: ResourceExt>(
        &mut self,
        kind: &str,
        object: &K,
        conditions: &[Condition],
        applier: &Applier,
    ) {
        let key = ObjectKey {
            kind: kind.to_owned(),
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        };
        let Some(manifest) = applier.manifest(&key) else {
            return;
        };
        let current =
            |condition: &&Condition| condition.observed_generation == object.meta().generation;
        let bad = |condition: &&Condition| match condition.type_.as_str() {
            "Ready" => condition.status == "False",
            "Degraded" => condition.status == "True",
            _ => false,
        };
        let found: Vec<_> = conditions.iter().filter(current).filter(bad).collect();
        let text = found
            .iter()
            .map(|condition| condition.message.as_str())
            .collect::<Vec<_>>()
            .join("; ");
        if self.told.get(&key).map_or("", String::as_str) == text {
            return;
        }
        for condition in found {
            for message in condition.message.split("; ") {
                let path = message.split_once(": ").map_or("", |(path, _)| path);
                let what = match condition.type_.as_str() {
                    "Ready" => "not Ready",
                    _ => "degraded",
                };
                let message = format!(
                    "{kind}/{} is {what} ({}): {message}",
                    key.name, condition.reason
                );
                self.complain(&manifest.complain(path, message));
            }
        }
        self.told.insert(key, text);
    }
}
