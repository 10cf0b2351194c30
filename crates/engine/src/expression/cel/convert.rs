//! Between CEL's values, JSON, and what templates insert.

use std::borrow::Cow;
use std::collections::HashMap;

use ::cel::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelMap, CelMapKey, CelNull,
    CelOptional, CelString, CelTimestamp, CelType, CelUInt, Kind,
};
use ::cel::common::value::Val;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value as Json};

use super::fuel::sorted_keys;
use crate::expression::value::{Value, double_text};

/// What a JSON integer becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Integers {
    /// Int, or uint above 2^63.
    Int,
    /// Double while it is exact, that is up to 2^53; `trigger.bodyFields`.
    Double,
}

/// JSON as a CEL value that borrows its texts.
pub(super) fn borrowed<'v>(json: &'v Json, integers: Integers) -> Box<dyn Val + 'v> {
    match json {
        Json::Null => Box::new(CelNull),
        Json::Bool(bool) => Box::new(CelBool::from(*bool)),
        Json::Number(number) => self::number(number, integers),
        Json::String(text) => Box::new(CelString::from(text.as_str())),
        Json::Array(items) => Box::new(CelList::from(
            items
                .iter()
                .map(|item| borrowed(item, integers))
                .collect::<Vec<_>>(),
        )),
        Json::Object(fields) => Box::new(CelMap::from(
            fields
                .iter()
                .map(|(name, value)| (CelMapKey::from(name.as_str()), borrowed(value, integers)))
                .collect::<HashMap<_, _>>(),
        )),
    }
}

/// JSON as a CEL value of its own, integers as int.
pub(super) fn owned<'v>(json: Json) -> Box<dyn Val + 'v> {
    match json {
        Json::Null => Box::new(CelNull),
        Json::Bool(bool) => Box::new(CelBool::from(bool)),
        Json::Number(number) => self::number(&number, Integers::Int),
        Json::String(text) => Box::new(CelString::from(text)),
        Json::Array(items) => Box::new(CelList::from(
            items.into_iter().map(owned).collect::<Vec<_>>(),
        )),
        Json::Object(fields) => Box::new(CelMap::from(
            fields
                .into_iter()
                .map(|(name, value)| (CelMapKey::from(name), owned(value)))
                .collect::<HashMap<_, _>>(),
        )),
    }
}

fn number<'v>(number: &Number, integers: Integers) -> Box<dyn Val + 'v> {
    const EXACT: u64 = 1 << 53;
    let double = || Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN)));
    match (number.as_i64(), number.as_u64()) {
        (Some(int), _) if integers == Integers::Int || int.unsigned_abs() > EXACT => {
            Box::new(CelInt::from(int))
        }
        (None, Some(uint)) => Box::new(CelUInt::from(uint)),
        _ => double(),
    }
}

/// A result as a template inserts it.
pub(super) fn to_template(value: &dyn Val) -> Value<'static> {
    match text(value) {
        Some(text) => Value::Text(Cow::Owned(text)),
        None => Value::Json(Cow::Owned(to_json(value))),
    }
}

/// The text of a value that is not JSON's own.
fn text(value: &dyn Val) -> Option<String> {
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        Some(text.inner().to_owned())
    } else if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        Some(STANDARD.encode(bytes.inner()))
    } else if let Some(time) = value.downcast_ref::<CelTimestamp>() {
        Some(
            time.inner()
                .to_utc()
                .to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
        )
    } else if let Some(duration) = value.downcast_ref::<CelDuration>() {
        Some(seconds(duration.inner()))
    } else if let Some(double) = value.downcast_ref::<CelDouble>() {
        let double = *double.inner();
        (!double.is_finite()).then(|| double_text(double))
    } else {
        value
            .downcast_ref::<CelType>()
            .map(|name| name.name().to_owned())
    }
}

/// As the JSON form of a protobuf Duration: `1.5s`.
fn seconds(duration: &chrono::Duration) -> String {
    let nanoseconds = duration.num_nanoseconds().unwrap_or_default();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let nanoseconds = nanoseconds.unsigned_abs();
    let fraction = format!("{:09}", nanoseconds % 1_000_000_000);
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{dot}{fraction}s", nanoseconds / 1_000_000_000)
}

/// A value as JSON: fields in the order of their names, an absent optional as null, what JSON cannot hold as its text.
pub(super) fn to_json(value: &dyn Val) -> Json {
    if let Some(text) = text(value) {
        return Json::String(text);
    }
    match value.get_type().kind() {
        Kind::Boolean => value
            .downcast_ref::<CelBool>()
            .map_or(Json::Null, |bool| Json::Bool(*bool.inner())),
        Kind::Int => value
            .downcast_ref::<CelInt>()
            .map_or(Json::Null, |int| Json::from(*int.inner())),
        Kind::UInt => value
            .downcast_ref::<CelUInt>()
            .map_or(Json::Null, |uint| Json::from(*uint.inner())),
        Kind::Double => value
            .downcast_ref::<CelDouble>()
            .map_or(Json::Null, |double| Json::from(*double.inner())),
        Kind::List => {
            let mut items = Vec::new();
            if let Some(list) = value.as_iterable() {
                let mut elements = list.iter();
                while let Some(element) = elements.next() {
                    items.push(to_json(element));
                }
            }
            Json::Array(items)
        }
        Kind::Map => Json::Object(
            sorted_keys(value)
                .into_iter()
                .filter_map(|key| {
                    let value = value.as_indexer()?.get(key.as_ref()).ok()?;
                    Some((field_name(key.as_ref()), to_json(value.as_ref())))
                })
                .collect(),
        ),
        _ => value
            .downcast_ref::<CelOptional<'_>>()
            .and_then(|optional| optional.option())
            .map_or(Json::Null, to_json),
    }
}

fn field_name(key: &dyn Val) -> String {
    match to_json(key) {
        Json::String(name) => name,
        other => other.to_string(),
    }
}
