//! Shows a scope to an expression: only the variables and fields that it reads.

use std::collections::HashMap;

use ::cel::Context;
use ::cel::common::types::{CelInt, CelMap, CelMapKey, CelString, CelTimestamp};
use ::cel::common::value::Val;

use super::check::{Fields, Uses};
use super::convert::{self, Integers};
use super::folded::FoldedMap;
use super::library;
use crate::effect::KeyRef;
use crate::expression::reference::{RUN_FIELDS, TRIGGER_SCALARS};
use crate::expression::scope::{StepView, View};
use crate::expression::{EvalError, Scope};

type Boxed<'v> = Box<dyn Val + 'v>;

/// Binds the variables that an expression uses.
pub(super) fn bind<'v>(
    context: &mut Context<'_, 'v>,
    uses: &Uses,
    view: &'v View<'_>,
) -> Result<(), EvalError> {
    let scope = view.scope;
    if let Some(fields) = &uses.trigger {
        context.add_variable_as_val("trigger", trigger(fields, view));
    }
    if !uses.steps.is_empty() {
        let steps = uses
            .steps
            .iter()
            .filter_map(|written| scope.step(written))
            .map(|(name, view)| (name.as_str(), step(view)));
        context.add_variable_as_val("steps", Box::new(FoldedMap::new(underscored, steps)));
    }
    if uses.params {
        let params = scope
            .params
            .iter()
            .map(|(name, value)| (name.as_str(), text(value)));
        context.add_variable_as_val("params", map(params));
    }
    if uses.run {
        context.add_variable_as_val("run", run(scope));
    }
    if !uses.configmaps.is_empty() {
        let mut configmaps = Vec::new();
        for (name, keys) in &uses.configmaps {
            let mut values = Vec::new();
            for key in keys {
                let reference = KeyRef {
                    name: name.clone(),
                    key: key.clone(),
                };
                values.push((
                    CelMapKey::from(key.clone()),
                    text(view.configmap(&reference)?),
                ));
            }
            let values: Boxed<'v> = Box::new(CelMap::from(HashMap::from_iter(values)));
            configmaps.push((CelMapKey::from(name.clone()), values));
        }
        let configmaps = CelMap::from(HashMap::from_iter(configmaps));
        context.add_variable_as_val("configmaps", Box::new(configmaps));
    }
    if uses.now {
        context.add_variable_as_val(library::NOW, now(scope)?);
    }
    Ok(())
}

fn text<'v>(text: &'v str) -> Boxed<'v> {
    Box::new(CelString::from(text))
}

fn map<'v>(entries: impl IntoIterator<Item = (&'v str, Boxed<'v>)>) -> Boxed<'v> {
    Box::new(CelMap::from(
        entries
            .into_iter()
            .map(|(key, value)| (CelMapKey::from(key), value))
            .collect::<HashMap<_, _>>(),
    ))
}

fn underscored(name: &str) -> String {
    name.replace('-', "_")
}

fn trigger<'v>(fields: &Fields, view: &'v View<'_>) -> Boxed<'v> {
    let scope = view.scope;
    let mut entries: Vec<(&str, Boxed<'v>)> = TRIGGER_SCALARS
        .into_iter()
        .filter(|name| fields.has(name))
        .map(|name| (name, text(scope.trigger_scalar(name).unwrap_or_default())))
        .collect();
    if fields.has("headers") {
        let headers = scope
            .event
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), text(value)));
        let headers = FoldedMap::new(str::to_ascii_lowercase, headers);
        entries.push(("headers", Box::new(headers)));
    }
    if fields.has("bodyFields") {
        let body = match view.body().fields() {
            Some(json) => convert::borrowed(json, Integers::Double),
            None => map([]),
        };
        entries.push(("bodyFields", body));
    }
    map(entries)
}

fn step(view: &StepView) -> Boxed<'_> {
    let results = view
        .results
        .iter()
        .map(|(name, value)| (name.as_str(), text(value)));
    map([
        ("status", text(&view.status)),
        ("message", text(&view.message)),
        (
            "attempts",
            Box::new(CelInt::from(i64::from(view.attempts))) as Boxed<'_>,
        ),
        ("results", Box::new(FoldedMap::new(underscored, results))),
    ])
}

fn run(scope: &Scope) -> Boxed<'_> {
    map(RUN_FIELDS.into_iter().map(|field| {
        let value = match field {
            "name" => &scope.run_name,
            "namespace" => &scope.run_namespace,
            _ => &scope.run_uid,
        };
        (field, text(value))
    }))
}

fn now<'v>(scope: &Scope) -> Result<Boxed<'v>, EvalError> {
    let nanoseconds = u32::try_from(scope.now.subsec_nanosecond()).unwrap_or_default();
    chrono::DateTime::from_timestamp(scope.now.as_second(), nanoseconds)
        .map(|time| Box::new(CelTimestamp::from(time.fixed_offset())) as Boxed<'v>)
        .ok_or_else(|| EvalError::new("now() is beyond the times that CEL can hold"))
}
