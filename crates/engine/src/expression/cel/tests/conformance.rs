//! The public CEL conformance cases (google/cel-spec) that need no protobuf message.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::cel::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelString, CelTimestamp, CelType, CelUInt,
    Kind,
};
use ::cel::common::value::Val;
use ::cel::{Context, Value as CelValue};
use base64::Engine as _;
use serde_json::Value as Json;

use super::super::{check, compile, fuel};

/// What passes today; it may only grow. The rest needs `cel.bind`, two-variable macros, `net.IP` and `cel.block`.
const FLOOR: usize = 1562;

/// The folder of public conformance data; `None` when it is absent, which fails in CI.
pub(crate) fn file(name: &str) -> Option<String> {
    let folder = std::env::var_os("KUBEZAP_CONFORMANCE").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance"),
        PathBuf::from,
    );
    match std::fs::read_to_string(folder.join(name)) {
        Ok(text) => Some(text),
        Err(error) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("{name} in {}: {error}", folder.display())
        }
        Err(_) => {
            eprintln!("skipped: no {name} in {}", folder.display());
            None
        }
    }
}

#[test]
fn cel_conformance_cases_pass() {
    let Some(cases) = file("cel.jsonl") else {
        return;
    };
    let mut failed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut passed, mut all) = (0, 0);
    for line in cases.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        // The facade has no containers: names in expressions are always whole.
        all += 1;
        match run(&case) {
            Ok(()) => passed += 1,
            Err(why) => failed
                .entry(case["file"].as_str().unwrap().to_owned())
                .or_default()
                .push(format!("{} {}: {why}", case["name"], case["expr"])),
        }
    }
    for (file, cases) in &failed {
        eprintln!("{file}: {} failed", cases.len());
        for case in cases.iter().take(if std::env::var_os("ALL").is_some() {
            1000
        } else {
            3
        }) {
            eprintln!("    {case}");
        }
    }
    eprintln!("{passed} of {all}");
    assert!(
        passed >= FLOOR,
        "{passed} of {all} pass, at least {FLOOR} must"
    );
}

fn run(case: &Json) -> Result<(), String> {
    let expects_error = case["expect"].get("error").is_some();
    let source = case["expr"].as_str().unwrap();
    let program = match compile::compile(source, check::Vocabulary::Any) {
        Ok(program) => program,
        Err(_) if expects_error => return Ok(()),
        Err(error) => return Err(error.message),
    };
    let bind = |context: &mut Context<'_, 'static>| {
        for (name, value) in case["bindings"].as_object().into_iter().flatten() {
            let value = value.get("value").unwrap_or(value);
            context.add_variable_as_val(name, self::value(value));
        }
        Ok(())
    };
    let outcome = program.run(
        &fuel::Fuel::new(1_000_000, program.0.patterns.clone()),
        bind,
        |value| expects_error || same(&case["expect"]["value"], value),
    );
    match outcome {
        Err(_) if expects_error => Ok(()),
        Err(error) => Err(error.message),
        Ok(_) if expects_error => Err("no error".to_owned()),
        Ok(true) => Ok(()),
        Ok(false) => Err("other value".to_owned()),
    }
}

fn only(value: &Json) -> (&str, &Json) {
    let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
    (kind, value)
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(value: &Json) -> T {
    value.as_str().unwrap().parse().unwrap()
}

fn double(value: &Json) -> f64 {
    match value.as_str().unwrap() {
        "nan" => f64::NAN,
        "inf" => f64::INFINITY,
        "-inf" => f64::NEG_INFINITY,
        text => text.parse().unwrap(),
    }
}

fn base64(value: &Json) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD
        .decode(value.as_str().unwrap())
        .unwrap()
}

fn seconds(value: &Json) -> (i64, i64) {
    let part = |index: usize| match &value[index] {
        Json::String(text) => text.parse().unwrap(),
        number => number.as_i64().unwrap(),
    };
    (part(0), part(1))
}

/// A case's value as CEL's.
fn value(value: &Json) -> Box<dyn Val> {
    let (kind, value) = only(value);
    let value: CelValue = match kind {
        "null" => CelValue::Null,
        "bool" => value.as_bool().unwrap().into(),
        "int" => CelValue::Int(parsed(value)),
        "uint" => CelValue::UInt(parsed(value)),
        "double" => CelValue::Float(double(value)),
        "string" => value.as_str().unwrap().into(),
        "bytes" => base64(value).into(),
        "list" => {
            let items: Vec<Box<dyn Val>> =
                value.as_array().unwrap().iter().map(self::value).collect();
            return Box::new(::cel::common::types::CelList::from(items));
        }
        "map" => {
            let entries = value.as_array().unwrap().iter().map(|pair| {
                let key = ::cel::common::types::CelMapKey::try_from(self::value(&pair[0])).unwrap();
                (key, self::value(&pair[1]))
            });
            return Box::new(::cel::common::types::CelMap::from(
                entries.collect::<std::collections::HashMap<_, _>>(),
            ));
        }
        "timestamp" => {
            let (seconds, nanoseconds) = seconds(value);
            let time = chrono::DateTime::from_timestamp(seconds, nanoseconds.try_into().unwrap());
            return Box::new(CelTimestamp::from(time.unwrap().fixed_offset()));
        }
        "duration" => {
            let (seconds, nanoseconds) = seconds(value);
            let duration =
                chrono::Duration::seconds(seconds) + chrono::Duration::nanoseconds(nanoseconds);
            return Box::new(CelDuration::from(duration));
        }
        other => panic!("binding of type {other}"),
    };
    value.try_into().unwrap()
}

fn same(expected: &Json, actual: &dyn Val) -> bool {
    let (kind, expected) = only(expected);
    match kind {
        "null" => actual.get_type().kind() == Kind::NullType,
        "bool" => actual
            .downcast_ref::<CelBool>()
            .is_some_and(|bool| Some(*bool.inner()) == expected.as_bool()),
        "int" => actual
            .downcast_ref::<CelInt>()
            .is_some_and(|int| *int.inner() == parsed::<i64>(expected)),
        "uint" => actual
            .downcast_ref::<CelUInt>()
            .is_some_and(|uint| *uint.inner() == parsed::<u64>(expected)),
        "double" => actual.downcast_ref::<CelDouble>().is_some_and(|actual| {
            let (actual, expected) = (*actual.inner(), double(expected));
            actual == expected || (actual.is_nan() && expected.is_nan())
        }),
        "string" => actual
            .downcast_ref::<CelString<'_>>()
            .is_some_and(|text| Some(text.inner()) == expected.as_str()),
        "bytes" => actual
            .downcast_ref::<CelBytes<'_>>()
            .is_some_and(|bytes| bytes.inner() == base64(expected)),
        "type" => actual
            .downcast_ref::<CelType>()
            .is_some_and(|name| Some(name.name()) == expected.as_str()),
        "timestamp" => actual.downcast_ref::<CelTimestamp>().is_some_and(|time| {
            let (seconds, nanoseconds) = seconds(expected);
            time.inner().timestamp() == seconds
                && i64::from(time.inner().timestamp_subsec_nanos()) == nanoseconds
        }),
        "duration" => actual.downcast_ref::<CelDuration>().is_some_and(|actual| {
            let (seconds, nanoseconds) = seconds(expected);
            actual.inner().num_nanoseconds() == Some(seconds * 1_000_000_000 + nanoseconds)
        }),
        "list" => {
            let expected = expected.as_array().unwrap();
            let mut items = match actual.as_iterable() {
                Some(list) if actual.get_type().kind() == Kind::List => list.iter(),
                _ => return false,
            };
            expected
                .iter()
                .all(|expected| items.next().is_some_and(|item| same(expected, item)))
                && items.next().is_none()
        }
        "map" => {
            let expected = expected.as_array().unwrap();
            let Some(map) = actual.as_indexer() else {
                return false;
            };
            fuel::sorted_keys(actual).len() == expected.len()
                && expected.iter().all(|pair| {
                    let key = value(&pair[0]);
                    map.get(key.as_ref())
                        .is_ok_and(|value| same(&pair[1], value.as_ref()))
                })
        }
        other => panic!("expectation of type {other}"),
    }
}
