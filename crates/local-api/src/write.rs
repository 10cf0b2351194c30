//! Create, update, patch and delete.

use std::sync::Arc;

use http::StatusCode;
use jiff::Timestamp;
use rand::RngExt as _;
use serde_json::{Value, json};

use crate::Inner;
use crate::admission::{self, FieldValidation};
use crate::failure::{Failure, Result};
use crate::field::FieldError;
use crate::garbage::{Cascade, Deleted, Propagation};
use crate::kinds::Kind;
use crate::patch::Patch;
use crate::reply::{Reply, Written};
use crate::request::{Query, Request};
use crate::show::{ListMeta, Show, storage};
use crate::store::{Key, State, Stored, key};

/// Bytes that a stored object may have, as etcd's default.
const OBJECT_LIMIT: usize = 1_572_864;

/// How often a patch without a resourceVersion is tried again when another write comes between.
const PATCH_TRIES: usize = 5;

/// How often a generated name is drawn when it is taken.
const NAME_TRIES: usize = 8;

impl Inner {
    pub(crate) fn create(&self, request: &Request<'_>) -> Result<Reply> {
        let kind = request.kind;
        let mut object = request.json()?;
        let warnings = self.decode(request, &mut object, false)?;
        let metadata = &mut object["metadata"];
        set_namespace(request, metadata)?;
        if metadata.get("resourceVersion").is_some() {
            return Err(Failure::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "",
                "resourceVersion should not be set on objects to be created",
            ));
        }
        self.check_namespace(&self.store.lock(), request, metadata["name"].as_str())?;
        let generated = metadata["name"].as_str().unwrap_or_default().is_empty()
            && metadata.get("generateName").is_some();
        self.prepare_new(kind, &mut object);

        let dry_run = request.dry_run()?;
        for _ in 0..NAME_TRIES {
            if generated {
                let prefix = object["metadata"]["generateName"]
                    .as_str()
                    .unwrap_or_default();
                object["metadata"]["name"] = generated_name(prefix).into();
            }
            self.check(kind, &object, None)?;
            check_size(request, &object)?;
            let name = object["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let key = Key {
                name: name.clone(),
                ..self.key(request)
            };
            let stored = {
                let mut state = self.store.lock();
                self.check_namespace(&state, request, Some(&name))?;
                if state.get(&key).is_some() {
                    if generated {
                        continue;
                    }
                    return Err(Failure::already_exists(kind, &name));
                }
                if dry_run {
                    Stored::unsaved(object)
                } else {
                    self.cascade(&mut state).put(&key, object)
                }
            };
            return Ok(self.written(request, StatusCode::CREATED, &stored, warnings));
        }
        let mut failure = Failure::already_exists(
            kind,
            object["metadata"]["name"].as_str().unwrap_or_default(),
        );
        failure
            .message
            .push_str(", the server was not able to generate a unique name for the object");
        Err(failure)
    }

    pub(crate) fn update(&self, request: &Request<'_>) -> Result<Reply> {
        let kind = request.kind;
        let mut object = request.json()?;
        let warnings = self.decode(request, &mut object, false)?;
        set_namespace(request, &mut object["metadata"])?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let wanted = request.name.as_deref().unwrap_or_default();
        if name != wanted {
            return Err(Failure::bad_request(if name.is_empty() {
                "name must be provided".to_owned()
            } else {
                format!(
                    "the name of the object ({name}) does not match the name on the URL ({wanted})"
                )
            }));
        }
        let conditional = object["metadata"].get("resourceVersion").is_some();
        let tries = if conditional { 1 } else { PATCH_TRIES };
        for _ in 0..tries {
            let old = self.stored(request)?;
            if !conditional && !allows_unconditional_update(kind) {
                let error = FieldError::invalid(
                    "metadata.resourceVersion",
                    0,
                    "must be specified for an update",
                );
                return Err(Failure::invalid(kind, wanted, &[error]));
            }
            if let Some(stored) = self.replace(request, &old, object.clone())? {
                return Ok(self.written(request, StatusCode::OK, &stored, warnings));
            }
        }
        Err(Failure::modified(kind, wanted))
    }

    pub(crate) fn patch(&self, request: &Request<'_>) -> Result<Reply> {
        let kind = request.kind;
        let patch = Patch::parse(request)?;
        for _ in 0..PATCH_TRIES {
            let old = self.stored(request)?;
            let shown = kind.show(&old.value);
            let mut object = patch.apply(&shown)?;
            let warnings = self.decode(request, &mut object, true)?;
            let name = request.name.as_deref().unwrap_or_default();
            if object["metadata"]["name"] != name {
                return Err(Failure::bad_request(
                    "the name of the object does not match the name on the URL",
                ));
            }
            // A patch that names no version is about whatever version there is.
            let conditional =
                object["metadata"]["resourceVersion"] != shown["metadata"]["resourceVersion"];
            match self.replace(request, &old, object)? {
                Some(stored) => {
                    return Ok(self.written(request, StatusCode::OK, &stored, warnings));
                }
                None if conditional => break,
                None => {}
            }
        }
        Err(Failure::modified(
            kind,
            request.name.as_deref().unwrap_or_default(),
        ))
    }

    /// Puts a new state in the place of `old`; `None` when another write came between.
    fn replace(
        &self,
        request: &Request<'_>,
        old: &Arc<Stored>,
        mut object: Value,
    ) -> Result<Option<Arc<Stored>>> {
        let kind = request.kind;
        let name = request.name.as_deref().unwrap_or_default();
        let given = object["metadata"]["resourceVersion"].as_str();
        if given.is_some_and(|given| given != old.version.to_string()) {
            return Err(Failure::modified(kind, name));
        }
        if let Some(uid) = object["metadata"]["uid"].as_str()
            && uid != old.uid()
        {
            return Err(Failure::conflict(
                kind,
                name,
                &format!(
                    "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                    old.uid()
                ),
            ));
        }
        if request.subresource.is_some() {
            let status = object.get("status").cloned();
            object = old.value.clone();
            set_or_remove(&mut object, "status", status);
        } else if kind.has_status {
            let status = old.value.get("status").cloned();
            set_or_remove(&mut object, "status", status);
        }
        keep_system_metadata(&mut object, &old.value, old.version);
        if !kind.builtin && request.subresource.is_none() && spec_differs(&object, &old.value, kind)
        {
            let generation = old.metadata()["generation"].as_i64().unwrap_or(0);
            object["metadata"]["generation"] = (generation + 1).into();
        }
        if object == old.value {
            return Ok(Some(old.clone()));
        }
        self.check(kind, &object, Some(&old.value))?;
        check_size(request, &object)?;
        if request.dry_run()? {
            return Ok(Some(Stored::unsaved(object)));
        }
        let key = self.key(request);
        let mut state = self.store.lock();
        match state.get(&key) {
            None => Err(Failure::not_found(kind, name)),
            Some(now) if now.version != old.version => Ok(None),
            Some(_) => Ok(Some(self.cascade(&mut state).put(&key, object))),
        }
    }

    pub(crate) fn delete(&self, request: &Request<'_>) -> Result<Reply> {
        let kind = request.kind;
        let options = DeleteOptions::parse(request)?;
        let key = self.key(request);
        if kind.builtin && kind.plural == "namespaces" && key.name == "default" {
            return Err(Failure::forbidden(
                kind,
                &key.name,
                "this namespace may not be deleted",
            ));
        }
        let mut state = self.store.lock();
        let object = state
            .get(&key)
            .ok_or_else(|| Failure::not_found(kind, &key.name))?;
        options.check(kind, &object)?;
        let deleted = if request.dry_run()? {
            Deleted::Gone(object)
        } else {
            let mut cascade = self.cascade(&mut state);
            let deleted = cascade.delete(&key, options.propagation);
            deleted.ok_or_else(|| Failure::not_found(kind, &key.name))?
        };
        drop(state);
        let (mut reply, object) = match deleted {
            Deleted::Terminating(object) => {
                let show = Show {
                    kind,
                    shape: request.shape,
                };
                (Reply::ok(show.one(&object)), object)
            }
            Deleted::Gone(object) => {
                let mut details = json!({"name": key.name, "group": kind.group, "kind": kind.plural, "uid": object.uid()});
                if kind.group.is_empty() {
                    details.as_object_mut().map(|map| map.shift_remove("group"));
                }
                let status = json!({
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Success",
                    "details": details,
                });
                (Reply::ok(status.to_string().into()), object)
            }
        };
        reply.written = Some(Written {
            name: key.name,
            version: object.version,
        });
        Ok(reply)
    }

    pub(crate) fn delete_collection(&self, request: &Request<'_>) -> Result<Reply> {
        let kind = request.kind;
        let options = DeleteOptions::parse(request)?;
        let selector = request.selector()?;
        let selecting = storage(&self.registry, kind);
        let dry_run = request.dry_run()?;
        let mut state = self.store.lock();
        let all = state.list(kind.storage(), request.namespace.as_deref());
        let mut deleted = Vec::new();
        for object in all {
            if selector.matches(selecting, &object.value) {
                if !dry_run {
                    let key = key(kind.storage(), &object);
                    self.cascade(&mut state).delete(&key, options.propagation);
                }
                deleted.push(object);
            }
        }
        let meta = ListMeta {
            version: state.version,
            ..ListMeta::default()
        };
        drop(state);
        let show = Show {
            kind,
            shape: request.shape,
        };
        Ok(Reply::ok(show.list(&deleted, &meta)))
    }

    fn cascade<'s>(&'s self, state: &'s mut State) -> Cascade<'s> {
        Cascade {
            state,
            registry: &self.registry,
            now: now(),
        }
    }

    /// Brings a body into the stored shape; gives what to warn about.
    fn decode(
        &self,
        request: &Request<'_>,
        object: &mut Value,
        patched: bool,
    ) -> Result<Vec<String>> {
        let kind = request.kind;
        check_type(kind, object)?;
        let as_given = (patched && request.field_validation()? == FieldValidation::Strict)
            .then(|| object.to_string());
        let refused = |why: String| {
            Failure::bad_request(format!(
                "{0} in version \"{1}\" cannot be handled as a {0}: {why}",
                kind.kind, kind.version
            ))
        };
        let unknown = admission::decode(kind, object).map_err(refused)?;
        let texts: Vec<String> = unknown
            .iter()
            .map(|field| format!("unknown field \"{field}\""))
            .collect();
        let warnings = match request.field_validation()? {
            FieldValidation::Ignore => Vec::new(),
            FieldValidation::Warn => texts,
            FieldValidation::Strict if texts.is_empty() => Vec::new(),
            FieldValidation::Strict => {
                let why = format!("strict decoding error: {}", texts.join(", "));
                return Err(match as_given {
                    Some(body) => {
                        let error = FieldError::invalid("patch", body, why);
                        Failure::invalid_named("", "", "", &[error])
                    }
                    None => refused(why),
                });
            }
        };
        kind.unshow(&self.registry, object);
        Ok(warnings)
    }

    fn check(&self, kind: &Kind, object: &Value, old: Option<&Value>) -> Result<()> {
        admission::check(storage(&self.registry, kind), object, old)
    }

    /// Refuses a create in a namespace that does not exist or is going.
    fn check_namespace(
        &self,
        state: &State,
        request: &Request<'_>,
        name: Option<&str>,
    ) -> Result<()> {
        let Some(namespace) = &request.namespace else {
            return Ok(());
        };
        let kind = self.registry.namespaces();
        let key = Key {
            kind: kind.id,
            namespace: String::new(),
            name: namespace.clone(),
        };
        let found = state.get(&key);
        let found = found.ok_or_else(|| Failure::not_found(kind, namespace))?;
        if !found.is_terminating() {
            return Ok(());
        }
        let name = name.unwrap_or_default();
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut failure = Failure::forbidden(request.kind, name, &why);
        if let Some(details) = &mut failure.details {
            details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
        }
        Err(failure)
    }

    fn prepare_new(&self, kind: &Kind, object: &mut Value) {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for key in [
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "generation",
            ] {
                metadata.shift_remove(key);
            }
            metadata.insert("uid".to_owned(), uuid::Uuid::new_v4().to_string().into());
            metadata.insert("creationTimestamp".to_owned(), now().into());
            if !kind.builtin {
                metadata.insert("generation".to_owned(), 1.into());
            }
        }
        if kind.has_status {
            set_or_remove(object, "status", None);
        }
        if kind.builtin && kind.plural == "namespaces" {
            object["status"] = json!({"phase": "Active"});
        }
    }

    fn written(
        &self,
        request: &Request<'_>,
        code: StatusCode,
        object: &Stored,
        warnings: Vec<String>,
    ) -> Reply {
        let show = Show {
            kind: request.kind,
            shape: request.shape,
        };
        let mut reply = Reply::new(code, show.one(object));
        reply.warnings = warnings;
        reply.written = Some(Written {
            name: object.metadata()["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            version: object.version,
        });
        reply
    }
}

/// The present, as metadata holds it.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn check_type(kind: &Kind, object: &mut Value) -> Result<()> {
    let Some(map) = object.as_object_mut() else {
        return Err(Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: json: cannot unmarshal value into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            kind.kind
        )));
    };
    let api_version = kind.api_version();
    for (key, wanted) in [("apiVersion", &api_version), ("kind", &kind.kind)] {
        if map
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .is_empty()
        {
            map.insert(key.to_owned(), wanted.as_str().into());
        }
    }
    if map["apiVersion"] != api_version {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({api_version})",
            map["apiVersion"].as_str().unwrap_or_default()
        )));
    }
    if map["kind"] != kind.kind {
        return Err(Failure::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: the kind does not match the resource",
            map["kind"].as_str().unwrap_or_default(),
            kind.version,
            kind.kind
        )));
    }
    Ok(())
}

fn set_namespace(request: &Request<'_>, metadata: &mut Value) -> Result<()> {
    let wanted = request.namespace.as_deref().unwrap_or_default();
    let given = metadata["namespace"].as_str().unwrap_or_default();
    if given == wanted {
        return Ok(());
    }
    if !given.is_empty() {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    metadata["namespace"] = wanted.into();
    Ok(())
}

fn generated_name(prefix: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    const MOST: usize = 63 - 5;
    let mut name: String = prefix.chars().take(MOST).collect();
    let mut rng = rand::rng();
    for _ in 0..5 {
        name.push(char::from(LETTERS[rng.random_range(0..LETTERS.len())]));
    }
    name
}

/// Kinds that the real server lets be replaced without saying which version.
fn allows_unconditional_update(kind: &Kind) -> bool {
    kind.builtin && kind.plural != "leases"
}

fn set_or_remove(object: &mut Value, key: &str, value: Option<Value>) {
    let Some(map) = object.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => {
            map.insert(key.to_owned(), value);
        }
        None => {
            map.shift_remove(key);
        }
    }
}

/// Carries over what only the server writes.
fn keep_system_metadata(object: &mut Value, old: &Value, version: u64) {
    let metadata = &mut object["metadata"];
    for key in [
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        set_or_remove(metadata, key, old["metadata"].get(key).cloned());
    }
    metadata["resourceVersion"] = version.to_string().into();
}

/// Whether anything but metadata differs; the status of a kind with the subresource is never different here.
fn spec_differs(object: &Value, old: &Value, kind: &Kind) -> bool {
    let rest = |value: &Value| {
        let map = value.as_object().into_iter().flatten();
        map.filter(|(key, _)| *key != "metadata" && !(kind.has_status && *key == "status"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    rest(object) != rest(old)
}

fn check_size(request: &Request<'_>, object: &Value) -> Result<()> {
    // Only a large body, or many of them on one object, can come near the limit; measuring costs.
    if request.body.len() > OBJECT_LIMIT / 8 && object.to_string().len() > OBJECT_LIMIT {
        return Err(Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "",
            "etcdserver: request is too large",
        ));
    }
    Ok(())
}

/// The options of a deletion, from its body or its query.
struct DeleteOptions {
    propagation: Propagation,
    uid: Option<String>,
    version: Option<String>,
}

impl DeleteOptions {
    fn parse(request: &Request<'_>) -> Result<Self> {
        let body: Value = if request.body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&request.body)
                .map_err(|error| Failure::bad_request(format!("delete options: {error}")))?
        };
        let query: &Query = &request.query;
        let propagation = body["propagationPolicy"]
            .as_str()
            .or_else(|| query.get("propagationPolicy"));
        let orphan = body["orphanDependents"].as_bool();
        let propagation = match (propagation, orphan) {
            (Some("Orphan"), _) | (None, Some(true)) => Propagation::Orphan,
            (Some("Foreground"), _) => Propagation::Foreground,
            (None | Some("Background" | ""), _) => Propagation::Background,
            (Some(other), _) => {
                let error = FieldError::not_supported(
                    "propagationPolicy",
                    other.into(),
                    &["Background".into(), "Foreground".into(), "Orphan".into()],
                );
                return Err(Failure::invalid_named(
                    "meta.k8s.io",
                    "DeleteOptions",
                    "",
                    &[error],
                ));
            }
        };
        let text = |key: &str| body["preconditions"][key].as_str().map(str::to_owned);
        Ok(Self {
            propagation,
            uid: text("uid"),
            version: text("resourceVersion"),
        })
    }

    fn check(&self, kind: &Kind, object: &Stored) -> Result<()> {
        let name = object.metadata()["name"].as_str().unwrap_or_default();
        if let Some(uid) = &self.uid
            && uid != object.uid()
        {
            return Err(Failure::conflict(
                kind,
                name,
                &format!(
                    "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                    object.uid()
                ),
            ));
        }
        if let Some(version) = &self.version
            && *version != object.version.to_string()
        {
            return Err(Failure::conflict(
                kind,
                name,
                &format!(
                    "Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: {}",
                    object.version
                ),
            ));
        }
        Ok(())
    }
}
