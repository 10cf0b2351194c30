//! Parses within bounds, checks, and puts the meter in.

use std::sync::Arc;

use ::cel::IdedExpr;
use ::cel::common::ast::{EntryExpr, Expr};

use super::check::{self, Vocabulary};
use super::{Compiled, Program, fuel, library, meter};
use crate::expression::stack::with_stack;
use crate::expression::{ParseError, quote};

/// The most bytes an expression may have.
const MAX_SOURCE: usize = 4096;
/// The most nodes above each other, after macros are expanded.
const MAX_DEPTH: usize = 64;

/// What the parser may need within these bounds, unoptimised.
const PARSER_STACK: usize = 64 << 20;
/// What evaluating one level may need, unoptimised, the meter's own nodes included.
const LEVEL_STACK: usize = 64 << 10;

/// Compiles an expression that may name what `vocabulary` holds.
pub(super) fn compile(source: &str, vocabulary: Vocabulary) -> Result<Program, ParseError> {
    if source.trim().is_empty() {
        return Err(ParseError::new("the expression is empty"));
    }
    if source.len() > MAX_SOURCE {
        return Err(ParseError::new(format!(
            "the expression has {} bytes; at most {MAX_SOURCE} are allowed",
            source.len()
        )));
    }
    with_stack(PARSER_STACK, || {
        let mut expression = parse(source)?;
        let depth = depth(&expression);
        if depth > MAX_DEPTH {
            return Err(ParseError::new(format!(
                "the expression '{}' is {depth} levels deep; at most {MAX_DEPTH} are allowed: split it over transform steps",
                quote(source)
            )));
        }
        if vocabulary == Vocabulary::Rule {
            check::unescape_fields(&mut expression);
        }
        let facts = check::check(&expression, vocabulary)?;
        Ok(Program(Arc::new(Compiled {
            patterns: fuel::Patterns::compile(&facts.patterns)?,
            expression: meter::meter(expression),
            references: facts.references.into_iter().collect(),
            uses: facts.uses,
            stack: (depth + 8) * LEVEL_STACK,
        })))
    })
}

fn parse(source: &str) -> Result<IdedExpr, ParseError> {
    library::environment()
        .parser()
        .enable_ident_escape_syntax(true)
        .parse(source)
        .map_err(|errors| {
            let what = errors.errors.first().map_or_else(String::new, |error| {
                let message = quote(error.msg.lines().next().unwrap_or_default());
                match error.pos {
                    (line, column) if line > 0 => {
                        format!(": line {line}, character {}: {message}", column.max(0))
                    }
                    _ => format!(": {message}"),
                }
            });
            ParseError::new(format!("'{}' is not a CEL expression{what}", quote(source)))
        })
}

fn depth(expression: &IdedExpr) -> usize {
    1 + match &expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 0,
        Expr::Call(call) => call
            .target
            .iter()
            .map(|target| depth(target))
            .chain(call.args.iter().map(depth))
            .max()
            .unwrap_or(0),
        Expr::Comprehension(comprehension) => [
            &comprehension.iter_range,
            &comprehension.accu_init,
            &comprehension.loop_cond,
            &comprehension.loop_step,
            &comprehension.result,
        ]
        .into_iter()
        .map(depth)
        .max()
        .unwrap_or(0),
        Expr::List(list) => list.elements.iter().map(depth).max().unwrap_or(0),
        Expr::Map(map) => entries_depth(&map.entries),
        Expr::Struct(structure) => entries_depth(&structure.entries),
        Expr::Select(select) => depth(&select.operand),
    }
}

fn entries_depth(entries: &[::cel::common::ast::IdedEntryExpr]) -> usize {
    entries
        .iter()
        .map(|entry| match &entry.expr {
            EntryExpr::StructField(field) => depth(&field.value),
            EntryExpr::MapEntry(entry) => depth(&entry.key).max(depth(&entry.value)),
        })
        .max()
        .unwrap_or(0)
}
