//! Rewrites an expression so that what it costs is paid for while it runs.
//!
//! The CEL crate has no cost limit of its own. Around everything that loops, grows, copies or reads a lot this puts a call
//! of one of the functions of [`super::fuel`], whose first argument is the tank. The shapes that the crate evaluates
//! specially stay as they are: `@result + [x]` (linear appends), `@result && x` and `@result || x` (errors absorbed).

use ::cel::IdedExpr;
use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, operators,
};

use super::check::{is_operator, qualified_name};
use super::{fuel, library};

/// Literals with fewer elements are not worth a charge of their own.
const SMALL_LITERAL: usize = 5;

/// Puts the meter in.
pub(super) fn meter(expression: IdedExpr) -> IdedExpr {
    let IdedExpr { id, expr } = expression;
    let expr = match expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => expr,
        Expr::Select(mut select) => {
            *select.operand = meter(*select.operand);
            Expr::Select(select)
        }
        Expr::List(list) => {
            let large = list.elements.len() >= SMALL_LITERAL;
            let list = IdedExpr {
                id,
                expr: Expr::List(ListExpr {
                    elements: list.elements.into_iter().map(copied).collect(),
                    ..list
                }),
            };
            return if large {
                charge(fuel::MADE, list)
            } else {
                list
            };
        }
        Expr::Map(mut map) => {
            let large = map.entries.len() >= SMALL_LITERAL;
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    entry.key = meter(std::mem::take(&mut entry.key));
                    entry.value = copied(std::mem::take(&mut entry.value));
                }
            }
            let map = IdedExpr {
                id,
                expr: Expr::Map(map),
            };
            return if large { charge(fuel::MADE, map) } else { map };
        }
        Expr::Struct(structure) => Expr::Struct(structure),
        Expr::Comprehension(comprehension) => {
            Expr::Comprehension(Box::new(meter_comprehension(*comprehension)))
        }
        Expr::Call(call) if is_operator(&call.func_name) => return meter_operator(id, call),
        Expr::Call(call) => return meter_call(id, call),
    };
    IdedExpr { id, expr }
}

/// Charges `expression` with one of the functions of [`fuel`].
fn charge(function: &str, expression: IdedExpr) -> IdedExpr {
    paid(function, vec![expression])
}

/// A call of a function whose first argument is the tank.
fn paid(function: &str, arguments: Vec<IdedExpr>) -> IdedExpr {
    let mut args = vec![ident(fuel::VARIABLE)];
    args.extend(arguments);
    node(Expr::Call(CallExpr {
        func_name: function.to_owned(),
        target: None,
        args,
    }))
}

fn ident(name: &str) -> IdedExpr {
    node(Expr::Ident(name.to_owned()))
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn is_literal(expression: &IdedExpr) -> bool {
    matches!(expression.expr, Expr::Literal(_))
}

/// A part of a list or map: copied into it.
fn copied(expression: IdedExpr) -> IdedExpr {
    if is_literal(&expression) {
        expression
    } else {
        charge(fuel::COPY, meter(expression))
    }
}

/// An operand or argument: all of it may be read.
fn read(expression: IdedExpr) -> IdedExpr {
    if is_literal(&expression) {
        expression
    } else {
        charge(fuel::READ, meter(expression))
    }
}

fn meter_operator(id: u64, mut call: CallExpr) -> IdedExpr {
    let compares_with_scalar = call.args.iter().any(is_literal);
    match call.func_name.as_str() {
        operators::EQUALS | operators::NOT_EQUALS if compares_with_scalar => {
            call.args = call.args.into_iter().map(meter).collect();
        }
        operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS => {
            call.args = call.args.into_iter().map(read).collect();
        }
        operators::IN => {
            let container = call.args.pop();
            call.args = call.args.into_iter().map(read).collect();
            call.args
                .extend(container.map(|container| charge(fuel::SCAN, meter(container))));
        }
        _ => call.args = call.args.into_iter().map(meter).collect(),
    }
    if call.func_name == operators::ADD {
        return paid(fuel::ADD, call.args);
    }
    let charged = match call.func_name.as_str() {
        // What an optional holds is a copy.
        operators::OPT_SELECT | operators::OPT_INDEX => Some(fuel::COPY),
        _ => None,
    };
    let operator = IdedExpr {
        id,
        expr: Expr::Call(call),
    };
    match charged {
        Some(function) => charge(function, operator),
        None => operator,
    }
}

fn meter_call(id: u64, mut call: CallExpr) -> IdedExpr {
    let qualified = qualified_name(&call);
    let is_member = call.target.is_some() && qualified.is_none();
    let name = qualified.unwrap_or_else(|| call.func_name.clone());
    let target = if is_member {
        call.target.take().map(|target| *target)
    } else {
        None
    };
    let own = match (name.as_str(), is_member) {
        ("now", false) => return ident(library::NOW),
        ("matches", _) => Some(fuel::MATCHES),
        ("replace", true) => Some(fuel::REPLACE),
        ("join", true) => Some(fuel::JOIN),
        _ => None,
    };
    // These could produce far more than they read, so functions of our own pay before they work.
    if let Some(function) = own {
        let arguments = target.into_iter().chain(call.args).map(read).collect();
        return paid(function, arguments);
    }
    let argument: fn(IdedExpr) -> IdedExpr = match name.as_str() {
        "size" => |argument| charge(fuel::TEXT, meter(argument)),
        "lists.range" => |argument| charge(fuel::COUNT, meter(argument)),
        "indexOf" | "lastIndexOf" => |argument| charge(fuel::NEEDLE, meter(argument)),
        _ => read,
    };
    let on: fn(IdedExpr) -> IdedExpr = match name.as_str() {
        "size" => argument,
        "distinct" => |target| charge(fuel::PAIRS, meter(target)),
        _ => read,
    };
    if let Some(target) = target {
        call.target = Some(Box::new(on(target)));
    }
    call.args = call.args.into_iter().map(argument).collect();
    charge(
        fuel::MADE,
        IdedExpr {
            id,
            expr: Expr::Call(call),
        },
    )
}

fn meter_comprehension(mut comprehension: ComprehensionExpr) -> ComprehensionExpr {
    if is_binding(&comprehension) {
        comprehension.accu_init = copied(comprehension.accu_init);
        comprehension.result = meter(comprehension.result);
        return comprehension;
    }
    let accumulator = comprehension.accu_var.clone();
    comprehension.iter_range = charge(fuel::RANGE, meter(comprehension.iter_range));
    comprehension.accu_init = meter(comprehension.accu_init);
    comprehension.result = meter(comprehension.result);
    let appends = is_literal(&comprehension.loop_cond) && is_append(&comprehension);
    comprehension.loop_step = if appends {
        meter_append(comprehension.loop_step)
    } else {
        comprehension.loop_cond = node(Expr::Call(CallExpr {
            func_name: operators::CONDITIONAL.to_owned(),
            target: None,
            args: vec![
                paid(fuel::TICK, Vec::new()),
                meter(comprehension.loop_cond),
                node(Expr::Literal(LiteralValue::Boolean(false.into()))),
            ],
        }));
        meter_step(comprehension.loop_step, &accumulator)
    };
    comprehension
}

/// `cel.bind` and `optMap` are comprehensions over nothing.
fn is_binding(comprehension: &ComprehensionExpr) -> bool {
    matches!(&comprehension.iter_range.expr, Expr::List(list) if list.elements.is_empty())
        && matches!(&comprehension.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(cond)) if !cond.inner())
}

fn is_accumulator(expression: &IdedExpr, name: &str) -> bool {
    matches!(&expression.expr, Expr::Ident(ident) if ident == name)
}

/// The steps of `map` and `filter`: `@result + [x]`, or `cond ? @result + [x] : @result`.
fn is_append(comprehension: &ComprehensionExpr) -> bool {
    let name = comprehension.accu_var.as_str();
    let appends = |expression: &IdedExpr| match &expression.expr {
        Expr::Call(call) if call.func_name == operators::ADD => match call.args.as_slice() {
            [left, right] => is_accumulator(left, name) && matches!(right.expr, Expr::List(_)),
            _ => false,
        },
        _ => false,
    };
    is_accumulator(&comprehension.result, name)
        && match &comprehension.loop_step.expr {
            Expr::Call(call) if call.func_name == operators::CONDITIONAL => {
                matches!(call.args.as_slice(), [_, step, otherwise] if appends(step) && is_accumulator(otherwise, name))
            }
            _ => appends(&comprehension.loop_step),
        }
}

fn meter_append(step: IdedExpr) -> IdedExpr {
    let IdedExpr { id, expr } = step;
    let Expr::Call(mut call) = expr else {
        return IdedExpr { id, expr };
    };
    if call.func_name == operators::CONDITIONAL {
        call.args[0] = charge(fuel::STEP, meter(std::mem::take(&mut call.args[0])));
        call.args[1] = meter_append(std::mem::take(&mut call.args[1]));
    } else if let Expr::List(list) = &mut call.args[1].expr {
        list.elements = std::mem::take(&mut list.elements)
            .into_iter()
            .map(|element| charge(fuel::STEP, meter(element)))
            .collect();
    }
    IdedExpr {
        id,
        expr: Expr::Call(call),
    }
}

/// Any other step; `@result && x` and `@result || x` keep their shape.
fn meter_step(step: IdedExpr, accumulator: &str) -> IdedExpr {
    let IdedExpr { id, expr } = step;
    match expr {
        Expr::Call(mut call)
            if matches!(
                call.func_name.as_str(),
                operators::LOGICAL_AND | operators::LOGICAL_OR
            ) && call
                .args
                .first()
                .is_some_and(|first| is_accumulator(first, accumulator)) =>
        {
            call.args = call.args.into_iter().map(meter).collect();
            IdedExpr {
                id,
                expr: Expr::Call(call),
            }
        }
        expr => meter(IdedExpr { id, expr }),
    }
}
