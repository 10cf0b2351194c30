//! The tank that an evaluation runs on, and the functions that draw from it.
//!
//! [`super::meter`] calls them; their names cannot be written in an expression. Once the tank is empty every one of them
//! fails, so whatever absorbs the error ends soon; whoever evaluates asks [`Fuel::is_exhausted`] at the end.

mod measure;
mod re2;
mod text;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ::cel::common::types::{CelBool, CelInt, CelList, DYN_TYPE, Kind, Type};
use ::cel::common::value::{CowVal, StaticVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use regex::Regex;

use crate::expression::{ParseError, quote};
use measure::{Measure, measure};

/// The variable that holds the tank.
pub(super) const VARIABLE: &str = "@fuel";

/// One loop step: gives true.
pub(super) const TICK: &str = "@tick";
/// One loop step that hands on a value, which is copied.
pub(super) const STEP: &str = "@step";
/// A value that was just produced.
pub(super) const MADE: &str = "@made";
/// `+`, with what it produced; a map is never appended to a list.
pub(super) const ADD: &str = "@add";
/// A value that is about to be copied.
pub(super) const COPY: &str = "@copy";
/// A value all of which may be read.
pub(super) const READ: &str = "@read";
/// The right side of `in`: a list is read, a map is not.
pub(super) const SCAN: &str = "@scan";
/// An argument of `size`: only text is read.
pub(super) const TEXT: &str = "@text";
/// A number of elements that will be produced.
pub(super) const COUNT: &str = "@count";
/// What is searched with a quadratic algorithm.
pub(super) const NEEDLE: &str = "@needle";
/// A list whose elements are compared in pairs.
pub(super) const PAIRS: &str = "@pairs";
/// What a comprehension runs over: of a map its keys in order, so that results do not depend on hashing.
pub(super) const RANGE: &str = "@range";
/// `matches`, with compiled patterns kept.
pub(super) const MATCHES: &str = "@matches";
/// `replace`, paid before it works.
pub(super) const REPLACE: &str = "@replace";
/// `join`, paid before it works.
pub(super) const JOIN: &str = "@join";

/// Bytes or elements produced per unit.
const MADE_PER_UNIT: usize = 10;
/// Bytes read or copied per unit.
const READ_PER_UNIT: usize = 1000;
/// Bytes matched against a regular expression per unit: it may visit each several times.
const MATCHED_PER_UNIT: usize = 100;
/// Units for compiling a regular expression that does not stand in the source.
const PATTERN_UNITS: usize = 100;
/// The most regular expressions that may stand in one expression; each is kept compiled.
const MAX_PATTERNS: usize = 16;
/// The most memory a compiled regular expression may take.
const PATTERN_SIZE: usize = 256 << 10;

static FUEL_TYPE: Type = fuel_type();

const fn fuel_type() -> Type {
    Type::new_unspecified_type("@fuel")
}

/// The tank: shared by its clones.
#[derive(Clone, Debug)]
pub(super) struct Fuel(Arc<Tank>);

#[derive(Debug)]
struct Tank {
    budget: i64,
    left: AtomicI64,
    patterns: Patterns,
    /// Patterns that were computed.
    computed: Mutex<BTreeMap<String, Regex>>,
}

/// Regular expressions that stand in the source, compiled.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns(Arc<BTreeMap<String, Regex>>);

impl Patterns {
    pub(super) fn compile(patterns: &BTreeSet<String>) -> Result<Self, ParseError> {
        if patterns.len() > MAX_PATTERNS {
            return Err(ParseError::new(format!(
                "the expression has {} regular expressions; at most {MAX_PATTERNS} are allowed",
                patterns.len()
            )));
        }
        let compiled = patterns
            .iter()
            .map(|pattern| Ok((pattern.clone(), compile(pattern).map_err(ParseError::new)?)))
            .collect::<Result<_, ParseError>>()?;
        Ok(Self(Arc::new(compiled)))
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(&re2::to_rust(pattern))
        .size_limit(PATTERN_SIZE)
        .dfa_size_limit(4 * PATTERN_SIZE)
        .nest_limit(64)
        .build()
        .map_err(|error| {
            let reason = match &error {
                regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
                error => {
                    let text = error.to_string();
                    let line = text.lines().last().unwrap_or_default();
                    line.trim_start_matches("error: ").to_owned()
                }
            };
            format!(
                "'{}' is not a regular expression that can be used: {reason}",
                quote(pattern)
            )
        })
}

impl Fuel {
    pub(super) fn new(units: i64, patterns: Patterns) -> Self {
        Self(Arc::new(Tank {
            budget: units,
            left: AtomicI64::new(units),
            patterns,
            computed: Mutex::default(),
        }))
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.0.left.load(Ordering::Relaxed) < 0
    }

    /// What it held at first.
    pub(super) fn budget(&self) -> i64 {
        self.0.budget
    }

    /// What was drawn.
    pub(super) fn used(&self) -> i64 {
        self.0
            .budget
            .saturating_sub(self.0.left.load(Ordering::Relaxed))
    }

    fn draw(&self, units: usize) -> Result<(), ExecutionError> {
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        let left = self.0.left.load(Ordering::Relaxed).saturating_sub(units);
        self.0.left.store(left, Ordering::Relaxed);
        if left < 0 {
            Err(ExecutionError::function_error("@fuel", "budget exceeded"))
        } else {
            Ok(())
        }
    }

    /// How much is worth measuring: beyond it the tank is empty anyway.
    fn measurable(&self, per_unit: usize) -> usize {
        let left = self.0.left.load(Ordering::Relaxed).max(0);
        usize::try_from(left)
            .unwrap_or(usize::MAX)
            .saturating_add(1)
            .saturating_mul(per_unit)
    }

    fn draw_made(&self, value: &dyn Val) -> Result<(), ExecutionError> {
        self.draw(1 + measure::produced(value) / MADE_PER_UNIT)?;
        self.draw_size(value, Measure::Copy)
    }

    fn draw_size(&self, value: &dyn Val, how: Measure) -> Result<(), ExecutionError> {
        let size = measure(value, how, self.measurable(READ_PER_UNIT));
        self.draw(size / READ_PER_UNIT)
    }

    /// Runs `with` on a compiled pattern.
    fn pattern<R>(
        &self,
        pattern: &str,
        with: impl FnOnce(&Regex) -> R,
    ) -> Result<R, ExecutionError> {
        if let Some(regex) = self.0.patterns.0.get(pattern) {
            return Ok(with(regex));
        }
        let mut computed = self
            .0
            .computed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !computed.contains_key(pattern) {
            self.draw(PATTERN_UNITS + pattern.len() / MADE_PER_UNIT)?;
            let regex = compile(pattern)
                .map_err(|error| ExecutionError::function_error("matches", error))?;
            computed.insert(pattern.to_owned(), regex);
        }
        Ok(with(&computed[pattern]))
    }
}

impl Val for Fuel {
    fn get_type(&self) -> &Type {
        &FUEL_TYPE
    }

    fn cel_type() -> &'static Type {
        &FUEL_TYPE
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Fuel {}

type Args<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// Declares the functions.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let any = || DYN_TYPE;
    let fuel = fuel_type;
    env.add_overload(TICK, TICK, vec![fuel()], tick)?;
    env.add_overload(STEP, STEP, vec![fuel(), any()], step)?;
    env.add_overload(MADE, MADE, vec![fuel(), any()], made)?;
    env.add_overload(ADD, ADD, vec![fuel(), any(), any()], add)?;
    env.add_overload(COPY, COPY, vec![fuel(), any()], copy)?;
    env.add_overload(READ, READ, vec![fuel(), any()], read)?;
    env.add_overload(SCAN, SCAN, vec![fuel(), any()], scan)?;
    env.add_overload(TEXT, TEXT, vec![fuel(), any()], read_text)?;
    env.add_overload(COUNT, COUNT, vec![fuel(), any()], count)?;
    env.add_overload(NEEDLE, NEEDLE, vec![fuel(), any()], needle)?;
    env.add_overload(PAIRS, PAIRS, vec![fuel(), any()], pairs)?;
    env.add_overload(RANGE, RANGE, vec![fuel(), any()], range)?;
    text::declare(env, fuel)
}

/// The tank and the other argument.
fn split<'b, 'v>(args: Args<'b, 'v>) -> Result<(Fuel, CowVal<'b, 'v>), ExecutionError> {
    match <[CowVal<'b, 'v>; 2]>::try_from(args) {
        Ok([fuel, value]) => Ok((tank(&fuel)?, value)),
        Err(args) => Err(ExecutionError::invalid_argument_count(2, args.len())),
    }
}

fn tank(value: &CowVal<'_, '_>) -> Result<Fuel, ExecutionError> {
    value
        .downcast_ref::<Fuel>()
        .cloned()
        .ok_or_else(|| ExecutionError::function_error("@fuel", "no tank"))
}

fn tick<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let fuel = args
        .first()
        .ok_or_else(ExecutionError::missing_argument_or_target)?;
    tank(fuel)?.draw(1)?;
    Ok(CowVal::owned(CelBool::from(true)))
}

fn step<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let (fuel, value) = split(args)?;
    fuel.draw(1)?;
    fuel.draw_size(value.as_ref(), Measure::Copy)?;
    Ok(value)
}

fn made<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let (fuel, value) = split(args)?;
    fuel.draw_made(value.as_ref())?;
    Ok(value)
}

/// The crate would append the keys of a map to a list, in the order of their hashes.
fn add<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let [fuel, left, right] = args.as_slice() else {
        return Err(ExecutionError::invalid_argument_count(2, args.len()));
    };
    let types = [left, right].map(|value| value.get_type());
    let mixes_list = types[0].kind() == Kind::List && types[1].kind() != Kind::List;
    let sum = match left.as_adder() {
        Some(adder) if !mixes_list => adder.add(right.as_ref())?.into_owned(),
        _ => {
            let names = types.map(|value| value.name().to_owned());
            return Err(ExecutionError::no_such_overload("_+_", names.into()));
        }
    };
    tank(fuel)?.draw_made(sum.as_ref())?;
    Ok(CowVal::Owned(sum))
}

fn copy<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let (fuel, value) = split(args)?;
    fuel.draw_size(value.as_ref(), Measure::Copy)?;
    Ok(value)
}

fn read<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let (fuel, value) = split(args)?;
    fuel.draw_size(value.as_ref(), Measure::Read)?;
    Ok(value)
}

fn scan<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let (fuel, value) = split(args)?;
    if value.get_type().kind() != Kind::Map {
        fuel.draw_size(value.as_ref(), Measure::Read)?;
    }
    Ok(value)
}

fn read_text<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let (fuel, value) = split(args)?;
    if matches!(value.get_type().kind(), Kind::String | Kind::Bytes) {
        fuel.draw_size(value.as_ref(), Measure::Read)?;
    }
    Ok(value)
}

fn count<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let (fuel, value) = split(args)?;
    if let Some(count) = value.downcast_ref::<CelInt>() {
        fuel.draw(usize::try_from(*count.inner()).unwrap_or(0) / MADE_PER_UNIT)?;
    }
    Ok(value)
}

fn needle<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let (fuel, value) = split(args)?;
    // Short ones are what people search for; a long one may be compared at every place.
    let length = measure::produced(value.as_ref());
    fuel.draw(length.saturating_sub(64) * 4)?;
    Ok(value)
}

fn pairs<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let (fuel, value) = split(args)?;
    let elements = measure::produced(value.as_ref());
    fuel.draw(elements.saturating_mul(elements) / READ_PER_UNIT)?;
    fuel.draw_size(value.as_ref(), Measure::Read)?;
    Ok(value)
}

fn range<'b, 'v>(args: Args<'b, 'v>) -> Outcome<'b, 'v> {
    let (fuel, value) = split(args)?;
    // Each element is copied for its step.
    fuel.draw_size(value.as_ref(), Measure::Copy)?;
    if value.get_type().kind() != Kind::Map {
        return Ok(value);
    }
    Ok(CowVal::owned(CelList::from(sorted_keys(value.as_ref()))))
}

/// The keys of a map in order: booleans, numbers, text.
pub(super) fn sorted_keys<'v>(map: &(dyn Val + 'v)) -> Vec<Box<dyn Val + 'v>> {
    let mut keys: Vec<Box<dyn Val + 'v>> = Vec::new();
    if let Some(iterable) = map.as_iterable() {
        let mut items = iterable.iter();
        while let Some(key) = items.next() {
            keys.push(key.clone_as_boxed());
        }
    }
    let rank = |key: &dyn Val| match key.get_type().kind() {
        Kind::Boolean => 0,
        Kind::Int | Kind::UInt => 1,
        _ => 2,
    };
    keys.sort_by(|left, right| {
        rank(left.as_ref())
            .cmp(&rank(right.as_ref()))
            .then_with(|| {
                left.as_comparer()
                    .and_then(|comparer| comparer.compare(right.as_ref()).ok())
                    .unwrap_or(std::cmp::Ordering::Equal)
            })
    });
    keys
}
