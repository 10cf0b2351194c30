//! `matches`, `replace` and `join`, as the CEL crate has them, paid for before they work.

use ::cel::common::types::{CelBool, CelInt, CelString, INT_TYPE, LIST_TYPE, STRING_TYPE, Type};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use super::{Args, JOIN, MADE_PER_UNIT, MATCHED_PER_UNIT, MATCHES, Outcome, REPLACE, tank};

pub(super) fn declare(env: &mut Env, fuel: fn() -> Type) -> Result<(), DeclarationError> {
    let text = || STRING_TYPE;
    env.add_overload(MATCHES, MATCHES, vec![fuel(), text(), text()], matches)?;
    env.add_overload(
        REPLACE,
        "@replace_all",
        vec![fuel(), text(), text(), text()],
        replace,
    )?;
    env.add_overload(
        REPLACE,
        "@replace_some",
        vec![fuel(), text(), text(), text(), INT_TYPE],
        replace,
    )?;
    env.add_overload(JOIN, "@join", vec![fuel(), LIST_TYPE], join)?;
    env.add_overload(
        JOIN,
        "@join_separated",
        vec![fuel(), LIST_TYPE, text()],
        join,
    )
}

fn text<'a>(value: &'a (dyn Val + '_)) -> Result<&'a str, ExecutionError> {
    value
        .downcast_ref::<CelString<'_>>()
        .map(CelString::inner)
        .ok_or_else(|| ExecutionError::UnexpectedType {
            got: value.get_type().name().to_owned(),
            want: "string".to_owned(),
        })
}

fn matches<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let [fuel, subject, pattern] = args.as_slice() else {
        return Err(ExecutionError::invalid_argument_count(2, args.len()));
    };
    let (fuel, subject, pattern) = (
        tank(fuel)?,
        text(subject.as_ref())?,
        text(pattern.as_ref())?,
    );
    fuel.draw(1 + subject.len() / MATCHED_PER_UNIT)?;
    let matched = fuel.pattern(pattern, |regex| regex.is_match(subject))?;
    Ok(CowVal::owned(CelBool::from(matched)))
}

fn replace<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let [fuel, subject, from, to, rest @ ..] = args.as_slice() else {
        return Err(ExecutionError::invalid_argument_count(3, args.len()));
    };
    let (fuel, subject, from, to) = (
        tank(fuel)?,
        text(subject.as_ref())?,
        text(from.as_ref())?,
        text(to.as_ref())?,
    );
    let most = rest
        .first()
        .and_then(|most| most.downcast_ref::<CelInt>())
        .and_then(|most| usize::try_from(*most.inner()).ok())
        .unwrap_or(usize::MAX);
    let found = subject.matches(from).take(most).count();
    let length = subject.len().saturating_add(found.saturating_mul(to.len()));
    fuel.draw(1 + length / MADE_PER_UNIT)?;
    Ok(CowVal::owned(CelString::from(
        subject.replacen(from, to, most),
    )))
}

fn join<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let [fuel, list, rest @ ..] = args.as_slice() else {
        return Err(ExecutionError::invalid_argument_count(1, args.len()));
    };
    let fuel = tank(fuel)?;
    let separator = match rest.first() {
        Some(separator) => text(separator.as_ref())?,
        None => "",
    };
    let mut parts = Vec::new();
    let mut length = 0_usize;
    if let Some(list) = list.as_iterable() {
        let mut items = list.iter();
        while let Some(item) = items.next() {
            let part = text(item)?;
            length = length
                .saturating_add(part.len())
                .saturating_add(separator.len());
            parts.push(part);
        }
    }
    fuel.draw(1 + length / MADE_PER_UNIT)?;
    Ok(CowVal::owned(CelString::from(parts.join(separator))))
}
