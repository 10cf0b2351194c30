//! The environment: CEL's standard library, the string, list, math, encoder and optional libraries, and our own functions.

use std::sync::{Arc, LazyLock};

use ::cel::common::types::{CelBytes, CelString, DYN_TYPE, STRING_TYPE};
use ::cel::common::value::CowVal;
use ::cel::{DeclarationError, Env, ExecutionError, extensions};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{convert, fuel};
use crate::expression::value::compact;

/// The variable that `now()` becomes.
pub(super) const NOW: &str = "@now";

/// The one environment of all expressions.
pub(super) fn environment() -> Arc<Env> {
    static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
        let mut env = Env::stdlib();
        declare(&mut env).expect("no name is declared twice");
        Arc::new(env)
    });
    Arc::clone(&ENVIRONMENT)
}

fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    env.add_extension(extensions::math)?;
    env.add_extension(extensions::encoders)?;
    env.add_extension(fuel::declare)?;
    env.add_overload("json", "json_of_string", vec![STRING_TYPE], json)?;
    env.add_overload("toJson", "to_json", vec![DYN_TYPE], to_json)?;
    env.add_overload(
        "base64.encode",
        "base64_encode_string",
        vec![STRING_TYPE],
        encode_text,
    )
}

/// `json(text)`: the value that JSON text holds; an integer is an int, above 2^63 a uint.
fn json<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = argument::<CelString<'_>>(&args)?;
    let json: serde_json::Value = serde_json::from_str(text.inner())
        .map_err(|error| ExecutionError::function_error("json", error))?;
    Ok(CowVal::Owned(convert::owned(json)))
}

/// `toJson(value)`: compact JSON, the fields of a map in the order of their names.
fn to_json<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = args
        .first()
        .ok_or_else(ExecutionError::missing_argument_or_target)?;
    Ok(CowVal::owned(CelString::from(compact(&convert::to_json(
        value.as_ref(),
    )))))
}

/// `base64.encode(text)`, beside the one for bytes that the library has.
fn encode_text<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = argument::<CelString<'_>>(&args)?;
    Ok(CowVal::owned(CelString::from(
        STANDARD.encode(CelBytes::from(text.inner().as_bytes()).inner()),
    )))
}

fn argument<'a, 'b, 'v, T>(args: &'a [CowVal<'b, 'v>]) -> Result<&'a T, ExecutionError>
where
    T: ::cel::common::value::FromVal<'a, 'v>,
    'b: 'a,
{
    args.first()
        .and_then(|value| value.as_ref().downcast_ref::<T>())
        .ok_or_else(ExecutionError::missing_argument_or_target)
}
