//! Writes: what the server fills in, refuses and keeps, for create, update, patch and delete.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::errors::{Cause, Refusal};
use crate::kinds::Kind;
use crate::patch;
use crate::request::Query;
use crate::store::{Inner, Key, KindIndex};

/// The most bytes an object may have, as JSON; etcd's default limit on a request.
pub(crate) const MAX_OBJECT_BYTES: usize = 1_572_864;

/// One write under the store's lock.
pub(crate) struct Writer<'a> {
    pub(crate) kinds: &'a [Kind],
    pub(crate) inner: &'a mut Inner,
    pub(crate) index: KindIndex,
    pub(crate) namespace: String,
    pub(crate) query: &'a Query,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
}

impl Writer<'_> {
    fn kind(&self) -> &Kind {
        &self.kinds[self.index]
    }

    fn key(&self, name: &str) -> Key {
        (self.namespace.clone(), name.to_owned())
    }

    pub(crate) fn create(&mut self, mut object: Value) -> Result<Arc<Value>, Refusal> {
        self.check_envelope(&mut object, "")?;
        self.check_namespace()?;
        let metadata = &mut object["metadata"];
        let name = match (metadata["name"].as_str(), metadata["generateName"].as_str()) {
            (Some(name), _) if !name.is_empty() => name.to_owned(),
            (_, Some(prefix)) if !prefix.is_empty() => {
                format!("{prefix}{}", &Uuid::new_v4().simple().to_string()[..5])
            }
            _ => {
                let cause = Cause {
                    field: "metadata.name".into(),
                    reason: "FieldValueRequired",
                    message: "Required value: name or generateName is required".into(),
                };
                return Err(Refusal::invalid(self.kind(), "", vec![cause]));
            }
        };
        metadata["name"] = json!(name);
        if let Some(cause) = bad_name(&name) {
            return Err(Refusal::invalid(self.kind(), &name, vec![cause]));
        }
        if metadata["resourceVersion"]
            .as_str()
            .is_some_and(|version| !version.is_empty())
        {
            return Err(Refusal::bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        metadata["uid"] = json!(Uuid::new_v4().to_string());
        metadata["creationTimestamp"] = json!(seconds(Timestamp::now()));
        metadata["generation"] = json!(1);
        for server_owned in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "managedFields",
        ] {
            remove(metadata, server_owned);
        }
        if self.kind().status {
            object
                .as_object_mut()
                .map(|fields| fields.shift_remove("status"));
        }
        self.fill_in(&mut object);
        self.admit(&name, &mut object, None)?;
        if self.inner.get(self.index, &self.namespace, &name).is_some() {
            return Err(Refusal::already_exists(self.kind(), &name));
        }
        self.store(&name, object)
    }

    pub(crate) fn update(
        &mut self,
        name: &str,
        object: Value,
        status: bool,
    ) -> Result<Arc<Value>, Refusal> {
        let old = self.existing(name)?;
        self.replace(name, object, &old, status)
    }

    pub(crate) fn patch(
        &mut self,
        name: &str,
        content_type: &str,
        body: &[u8],
        status: bool,
    ) -> Result<Arc<Value>, Refusal> {
        let old = self.existing(name)?;
        let object = patch::apply(self.kind(), &old, content_type, body)?;
        self.replace(name, object, &old, status)
    }

    fn replace(
        &mut self,
        name: &str,
        mut object: Value,
        old: &Arc<Value>,
        status: bool,
    ) -> Result<Arc<Value>, Refusal> {
        self.check_envelope(&mut object, name)?;
        let given = object["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_default();
        if !given.is_empty() && old["metadata"]["resourceVersion"] != given {
            return Err(Refusal::conflict(self.kind(), name));
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        if !uid.is_empty() && old["metadata"]["uid"] != uid {
            return Err(Refusal::precondition(
                self.kind(),
                name,
                "UID",
                uid,
                old["metadata"]["uid"].as_str().unwrap_or_default(),
            ));
        }
        let mut next = if status {
            // Through the subresource only the status changes.
            let mut next = old.as_ref().clone();
            set(&mut next, "status", object.get("status").cloned());
            next
        } else {
            if self.kind().status {
                set(&mut object, "status", old.get("status").cloned());
            }
            let metadata = &mut object["metadata"];
            for server_owned in [
                "uid",
                "creationTimestamp",
                "generation",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
            ] {
                set(
                    metadata,
                    server_owned,
                    old["metadata"].get(server_owned).cloned(),
                );
            }
            metadata["name"] = json!(name);
            remove(metadata, "managedFields");
            remove(metadata, "selfLink");
            object
        };
        self.fill_in(&mut next);
        self.admit(name, &mut next, Some(old))?;
        next["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        if next == **old {
            return Ok(old.clone());
        }
        if self.kind().schema.is_some()
            && without_metadata_and_status(&next) != without_metadata_and_status(old)
        {
            next["metadata"]["generation"] =
                json!(old["metadata"]["generation"].as_i64().unwrap_or(1) + 1);
        }
        let deleting = next["metadata"]["deletionTimestamp"].is_string();
        if deleting && finalizers(&next).is_empty() && !self.query.is_dry_run() {
            // The last finalizer is gone: so is the object.
            let last = self.store(name, next)?;
            self.remove_now(name);
            return Ok(last);
        }
        self.store(name, next)
    }

    /// Removes an object, or marks it when finalizers hold it.
    pub(crate) fn delete(&mut self, name: &str, options: &Value) -> Result<Arc<Value>, Refusal> {
        let old = self.existing(name)?;
        for (field, what) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let (given, actual) = (
                options["preconditions"][field].as_str(),
                old["metadata"][field].as_str().unwrap_or_default(),
            );
            if let Some(given) = given.filter(|given| *given != actual) {
                return Err(Refusal::precondition(
                    self.kind(),
                    name,
                    what,
                    given,
                    actual,
                ));
            }
        }
        if self.query.is_dry_run() {
            return Ok(old);
        }
        if !finalizers(&old).is_empty() {
            if old["metadata"]["deletionTimestamp"].is_string() {
                return Ok(old);
            }
            let mut marked = old.as_ref().clone();
            marked["metadata"]["deletionTimestamp"] = json!(seconds(Timestamp::now()));
            marked["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            if let Some(generation) = marked["metadata"]["generation"].as_i64() {
                marked["metadata"]["generation"] = json!(generation + 1);
            }
            return self.store(name, marked);
        }
        let orphan =
            options["propagationPolicy"] == "Orphan" || options["orphanDependents"] == true;
        let last = self
            .remove_now(name)
            .ok_or_else(|| Refusal::not_found(self.kind(), name))?;
        if !orphan {
            collect(self.inner, self.kinds);
        }
        Ok(last)
    }

    fn remove_now(&mut self, name: &str) -> Option<Arc<Value>> {
        let key = self.key(name);
        let last = self.inner.remove(self.index, &key)?;
        if self.kind().kind == "Namespace" {
            let inside: Vec<_> = self
                .inner
                .everything()
                .filter(|(_, (namespace, _), _)| namespace == name)
                .map(|(kind, key, _)| (kind, key.clone()))
                .collect();
            for (kind, key) in inside {
                self.inner.remove(kind, &key);
            }
        }
        Some(last)
    }

    fn existing(&self, name: &str) -> Result<Arc<Value>, Refusal> {
        self.inner
            .get(self.index, &self.namespace, name)
            .ok_or_else(|| Refusal::not_found(self.kind(), name))
    }

    fn store(&mut self, name: &str, object: Value) -> Result<Arc<Value>, Refusal> {
        if self.query.is_dry_run() {
            return Ok(Arc::new(object));
        }
        if object.to_string().len() > MAX_OBJECT_BYTES {
            return Err(Refusal::too_large(MAX_OBJECT_BYTES));
        }
        let key = self.key(name);
        Ok(self.inner.put(self.index, key, object))
    }

    /// The object is of the kind, name and namespace that the URL names.
    fn check_envelope(&self, object: &mut Value, name: &str) -> Result<(), Refusal> {
        let kind = self.kind();
        if !object.is_object() {
            return Err(Refusal::bad_request("the body is not a JSON object"));
        }
        for (field, expected) in [
            ("apiVersion", kind.api_version()),
            ("kind", kind.kind.clone()),
        ] {
            match object[field].as_str() {
                Some(given) if given == expected => {}
                None | Some("") => object[field] = json!(expected),
                Some(given) => {
                    return Err(Refusal::bad_request(format!(
                        "the {field} in the data ({given}) does not match the expected {field} ({expected})"
                    )));
                }
            }
        }
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        let metadata = &mut object["metadata"];
        if let Some(given) = metadata["name"]
            .as_str()
            .filter(|given| !name.is_empty() && *given != name)
        {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        if kind.namespaced {
            match metadata["namespace"].as_str() {
                Some(given) if !given.is_empty() && given != self.namespace => {
                    return Err(Refusal::bad_request(
                        "the namespace of the provided object does not match the namespace sent on the request",
                    ));
                }
                _ => metadata["namespace"] = json!(self.namespace),
            }
        } else {
            remove(metadata, "namespace");
        }
        Ok(())
    }

    fn check_namespace(&self) -> Result<(), Refusal> {
        if !self.kind().namespaced {
            return Ok(());
        }
        let Some(namespaces) = self
            .kinds
            .iter()
            .position(|kind| kind.group.is_empty() && kind.kind == "Namespace")
        else {
            return Ok(());
        };
        match self.inner.get(namespaces, "", &self.namespace) {
            Some(namespace) if namespace["metadata"]["deletionTimestamp"].is_string() => {
                Err(Refusal::forbidden(
                    self.kind(),
                    "",
                    &format!(
                        "unable to create new content in namespace {} because it is being terminated",
                        self.namespace
                    ),
                ))
            }
            Some(_) => Ok(()),
            None => Err(Refusal::not_found(&self.kinds[namespaces], &self.namespace)),
        }
    }

    /// What built-in kinds get without asking.
    fn fill_in(&self, object: &mut Value) {
        match self.kind().kind.as_str() {
            "Namespace" => {
                if object["status"]["phase"].is_null() {
                    object["status"] = json!({"phase": "Active"});
                }
                let name = object["metadata"]["name"].clone();
                object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            }
            "Secret" => {
                use base64::Engine;
                if object["type"].is_null() {
                    object["type"] = json!("Opaque");
                }
                if let Some(Value::Object(texts)) = object
                    .as_object_mut()
                    .and_then(|fields| fields.shift_remove("stringData"))
                {
                    for (key, text) in texts {
                        let text = text.as_str().unwrap_or_default();
                        object["data"][key] =
                            json!(base64::engine::general_purpose::STANDARD.encode(text));
                    }
                }
            }
            _ => {}
        }
    }

    /// Defaults, pruning and validation of custom kinds.
    fn admit(
        &mut self,
        name: &str,
        object: &mut Value,
        old: Option<&Arc<Value>>,
    ) -> Result<(), Refusal> {
        let kinds = self.kinds;
        let kind = &kinds[self.index];
        let Some(schema) = &kind.schema else {
            return Ok(());
        };
        let unknown = schema.prune(object);
        if !unknown.is_empty() {
            match self.query.get("fieldValidation").unwrap_or("Warn") {
                "Strict" => {
                    let list: Vec<_> = unknown
                        .iter()
                        .map(|path| format!("unknown field \"{path}\""))
                        .collect();
                    let full = if kind.group.is_empty() {
                        kind.kind.clone()
                    } else {
                        format!("{}.{}", kind.kind, kind.group)
                    };
                    let _ = full;
                    return Err(Refusal::bad_request(format!(
                        "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
                        kind.kind,
                        kind.version,
                        kind.kind,
                        list.join(", ")
                    )));
                }
                "Warn" => self.warnings.extend(
                    unknown
                        .iter()
                        .map(|path| format!("unknown field \"{path}\"")),
                ),
                _ => {}
            }
        }
        schema.default(object);
        let causes = schema.validate(object, old.map(|old| old.as_ref()));
        if causes.is_empty() {
            Ok(())
        } else {
            Err(Refusal::invalid(kind, name, causes))
        }
    }
}

/// Removes objects all of whose owners are gone, again and again.
fn collect(inner: &mut Inner, kinds: &[Kind]) {
    loop {
        let uids: std::collections::HashSet<String> = inner
            .everything()
            .filter_map(|(_, _, object)| object["metadata"]["uid"].as_str().map(str::to_owned))
            .collect();
        let orphans: Vec<_> = inner
            .everything()
            .filter(|(_, _, object)| {
                let owners = object["metadata"]["ownerReferences"]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                !owners.is_empty()
                    && owners
                        .iter()
                        .all(|owner| owner["uid"].as_str().is_some_and(|uid| !uids.contains(uid)))
            })
            .map(|(kind, key, object)| (kind, key.clone(), object.clone()))
            .collect();
        let mut removed = false;
        for (kind, key, object) in orphans {
            if finalizers(&object).is_empty() {
                removed |= inner.remove(kind, &key).is_some();
            } else if !object["metadata"]["deletionTimestamp"].is_string() {
                let mut marked = object.as_ref().clone();
                marked["metadata"]["deletionTimestamp"] = json!(seconds(Timestamp::now()));
                inner.put(kind, key, marked);
            }
        }
        let _ = kinds;
        if !removed {
            return;
        }
    }
}

fn finalizers(object: &Value) -> &[Value] {
    object["metadata"]["finalizers"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn without_metadata_and_status(object: &Value) -> Vec<(&String, &Value)> {
    let fields = object.as_object().into_iter().flatten();
    let mut fields: Vec<_> = fields
        .filter(|(name, _)| *name != "metadata" && *name != "status")
        .collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}

fn set(object: &mut Value, field: &str, value: Option<Value>) {
    match (object.as_object_mut(), value) {
        (Some(fields), Some(value)) => {
            fields.insert(field.to_owned(), value);
        }
        (Some(fields), None) => {
            fields.shift_remove(field);
        }
        (None, _) => {}
    }
}

fn remove(object: &mut Value, field: &str) {
    set(object, field, None);
}

/// `metav1.Time` has whole seconds.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// RFC 1123 subdomain, as the real server says it.
fn bad_name(name: &str) -> Option<Cause> {
    let label = |label: &str| {
        let byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(byte)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let message = if name.len() > 253 {
        "must be no more than 253 bytes".to_owned()
    } else if !name.split('.').all(label) {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')".to_owned()
    } else {
        return None;
    };
    Some(Cause {
        field: "metadata.name".into(),
        reason: "FieldValueInvalid",
        message: format!("Invalid value: \"{name}\": {message}"),
    })
}
