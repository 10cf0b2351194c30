//! Refuses what cannot work, and finds what an expression refers to.

use std::collections::{BTreeMap, BTreeSet};

use ::cel::IdedExpr;
use ::cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, operators};

use super::functions;
use crate::effect::KeyRef;
use crate::expression::reference::{
    self, RUN_FIELDS, check_step_field, check_trigger_field, step_without_field,
};
use crate::expression::{ParseError, Reference, quote};

/// Which variables exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// Those of a run.
    Flow,
    /// `self` and `oldSelf` of a schema's rule.
    Rule,
    /// Any: for the conformance cases, which bring their own.
    #[cfg(test)]
    Any,
}

/// Which parts of which variables an expression reads, so that only those are made.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// Fields of `trigger`; `None` in it when all are needed.
    pub(super) trigger: Option<Fields>,
    /// Steps as written.
    pub(super) steps: BTreeSet<String>,
    pub(super) params: bool,
    pub(super) run: bool,
    pub(super) configmaps: BTreeMap<String, BTreeSet<String>>,
    pub(super) now: bool,
    pub(super) old_self: bool,
}

/// Fields of a variable.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fields {
    All,
    Some(BTreeSet<String>),
}

impl Fields {
    pub(super) fn has(&self, field: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(fields) => fields.contains(field),
        }
    }
}

/// What the check found out.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) references: BTreeSet<Reference>,
    pub(super) uses: Uses,
    /// Regular expressions that stand in the source.
    pub(super) patterns: BTreeSet<String>,
}

/// Checks an expression.
pub(super) fn check(expression: &IdedExpr, vocabulary: Vocabulary) -> Result<Facts, ParseError> {
    let mut checker = Checker {
        vocabulary,
        locals: Vec::new(),
        facts: Facts::default(),
    };
    checker.expression(expression)?;
    Ok(checker.facts)
}

/// Reads Kubernetes' escapes in field names: `__namespace__` is the field `namespace`, `a__dash__b` the field `a-b`.
pub(super) fn unescape_fields(expression: &mut IdedExpr) {
    visit(expression, &mut |expression| {
        if let Expr::Select(select) = &mut expression.expr
            && select.field.contains("__")
        {
            select.field = unescape(&select.field);
        }
    });
}

fn unescape(field: &str) -> String {
    if let Some(keyword) = field
        .strip_prefix("__")
        .and_then(|rest| rest.strip_suffix("__"))
        && !keyword.is_empty()
        && keyword.bytes().all(|byte| byte.is_ascii_lowercase())
        && !matches!(keyword, "dash" | "dot" | "slash" | "underscores")
    {
        return keyword.to_owned();
    }
    field
        .replace("__underscores__", "\0")
        .replace("__dash__", "-")
        .replace("__dot__", ".")
        .replace("__slash__", "/")
        .replace('\0', "__")
}

/// Calls `change` on every node, parents first.
fn visit(expression: &mut IdedExpr, change: &mut impl FnMut(&mut IdedExpr)) {
    change(expression);
    match &mut expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Select(select) => visit(&mut select.operand, change),
        Expr::List(list) => list
            .elements
            .iter_mut()
            .for_each(|element| visit(element, change)),
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                visit(target, change);
            }
            call.args
                .iter_mut()
                .for_each(|argument| visit(argument, change));
        }
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    visit(&mut entry.key, change);
                    visit(&mut entry.value, change);
                }
            }
        }
        Expr::Struct(structure) => {
            for entry in &mut structure.entries {
                if let EntryExpr::StructField(field) = &mut entry.expr {
                    visit(&mut field.value, change);
                }
            }
        }
        Expr::Comprehension(comprehension) => {
            visit(&mut comprehension.iter_range, change);
            visit(&mut comprehension.accu_init, change);
            visit(&mut comprehension.loop_cond, change);
            visit(&mut comprehension.loop_step, change);
            visit(&mut comprehension.result, change);
        }
    }
}

/// The namespace of a call such as `math.abs(x)`, as `math.abs`.
pub(super) fn qualified_name(call: &CallExpr) -> Option<String> {
    let Expr::Ident(namespace) = &call.target.as_ref()?.expr else {
        return None;
    };
    functions::is_namespace(namespace).then(|| format!("{namespace}.{}", call.func_name))
}

/// Names of operators in the syntax tree: no identifier of the language.
pub(super) fn is_operator(name: &str) -> bool {
    name.starts_with(|c: char| !c.is_ascii_alphabetic())
        && (name.contains('_') || name == operators::IN)
}

struct Checker {
    vocabulary: Vocabulary,
    /// Variables of the macros around the current place.
    locals: Vec<String>,
    facts: Facts,
}

/// A variable and the fields selected from it, as far as they are literal.
struct Chain<'e> {
    root: &'e str,
    fields: Vec<&'e str>,
    /// Indexes that are expressions of their own.
    dynamic: Vec<&'e IdedExpr>,
}

impl Checker {
    fn expression(&mut self, expression: &IdedExpr) -> Result<(), ParseError> {
        if let Some(chain) = chain(expression)
            && !self.is_local(chain.root)
        {
            self.variable(&chain)?;
            return chain
                .dynamic
                .iter()
                .try_for_each(|index| self.expression(index));
        }
        match &expression.expr {
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Ok(()),
            Expr::Select(select) => self.expression(&select.operand),
            Expr::List(list) => self.all(&list.elements),
            Expr::Call(call) => self.call(call),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.expression(&entry.key)?;
                    self.expression(&entry.value)
                }
                EntryExpr::StructField(field) => self.expression(&field.value),
            }),
            Expr::Struct(structure) => Err(ParseError::new(format!(
                "unknown type '{}': there are no messages here; a map is written {{'key': value}}",
                quote(&structure.type_name)
            ))),
            Expr::Comprehension(comprehension) => {
                self.expression(&comprehension.iter_range)?;
                self.expression(&comprehension.accu_init)?;
                let outer = self.locals.len();
                self.locals.push(comprehension.accu_var.clone());
                self.locals.push(comprehension.iter_var.clone());
                self.locals.extend(comprehension.iter_var2.clone());
                self.expression(&comprehension.loop_cond)?;
                self.expression(&comprehension.loop_step)?;
                self.expression(&comprehension.result)?;
                self.locals.truncate(outer);
                Ok(())
            }
        }
    }

    fn all(&mut self, expressions: &[IdedExpr]) -> Result<(), ParseError> {
        expressions
            .iter()
            .try_for_each(|expression| self.expression(expression))
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|local| local == name)
    }

    fn call(&mut self, call: &CallExpr) -> Result<(), ParseError> {
        if is_operator(&call.func_name) {
            return self.all(&call.args);
        }
        let qualified = qualified_name(call).filter(|name| {
            !name
                .split('.')
                .next()
                .is_some_and(|root| self.is_local(root))
        });
        let is_member = call.target.is_some() && qualified.is_none();
        let name = qualified.as_deref().unwrap_or(&call.func_name);
        functions::check(name, is_member, call.args.len()).map_err(ParseError::new)?;
        if name == "now" {
            if self.vocabulary == Vocabulary::Rule {
                return Err(ParseError::new("'now' cannot be called in a rule"));
            }
            self.facts.uses.now = true;
        }
        if name == "matches"
            && let Some(Expr::Literal(LiteralValue::String(pattern))) =
                call.args.last().map(|argument| &argument.expr)
        {
            self.facts.patterns.insert(pattern.inner().to_owned());
        }
        if let Some(target) = call.target.as_deref().filter(|_| is_member) {
            self.expression(target)?;
        }
        self.all(&call.args)
    }

    fn variable(&mut self, chain: &Chain<'_>) -> Result<(), ParseError> {
        match self.vocabulary {
            Vocabulary::Flow => self.flow_variable(chain),
            Vocabulary::Rule => match chain.root {
                "self" => Ok(()),
                "oldSelf" => {
                    self.facts.uses.old_self = true;
                    Ok(())
                }
                root if is_type(root, &chain.fields) => Ok(()),
                root => Err(ParseError::new(format!(
                    "unknown variable '{}': a rule has self and oldSelf",
                    quote(root)
                ))),
            },
            #[cfg(test)]
            Vocabulary::Any => Ok(()),
        }
    }

    fn flow_variable(&mut self, chain: &Chain<'_>) -> Result<(), ParseError> {
        let fields = chain.fields.as_slice();
        let reference = match (chain.root, fields) {
            ("trigger", []) => {
                self.facts.uses.trigger = Some(Fields::All);
                Reference::Trigger(String::new())
            }
            ("trigger", [first, rest @ ..]) => {
                self.trigger_field(first, rest)?;
                Reference::Trigger(fields.join("."))
            }
            ("steps", []) => {
                return Err(ParseError::new(
                    "'steps' needs the name of a step that stands in the expression: write steps.NAME.results.RESULT or steps['NAME']",
                ));
            }
            ("steps", [step]) => return Err(step_without_field(step)),
            ("steps", [step, rest @ ..]) => {
                let field = rest.join(".");
                check_step_field(step, &field)?;
                self.facts.uses.steps.insert((*step).to_owned());
                Reference::Step {
                    step: (*step).to_owned(),
                    field,
                }
            }
            ("params", []) => {
                self.facts.uses.params = true;
                return Ok(());
            }
            ("params", [name, ..]) => {
                self.facts.uses.params = true;
                Reference::Param((*name).to_owned())
            }
            ("run", []) => {
                self.facts.uses.run = true;
                return Ok(());
            }
            ("run", [field, ..]) => {
                if !RUN_FIELDS.contains(field) {
                    return Err(ParseError::new(format!(
                        "'run.{}' does not exist: run has {}",
                        quote(field),
                        RUN_FIELDS.join(", ")
                    )));
                }
                self.facts.uses.run = true;
                Reference::Run((*field).to_owned())
            }
            ("configmaps", [name, key, ..]) => {
                self.facts
                    .uses
                    .configmaps
                    .entry((*name).to_owned())
                    .or_default()
                    .insert((*key).to_owned());
                Reference::ConfigMap(KeyRef {
                    name: (*name).to_owned(),
                    key: (*key).to_owned(),
                })
            }
            ("configmaps", _) => {
                return Err(ParseError::new(
                    "'configmaps' needs a name and a key that stand in the expression: write configmaps['NAME']['KEY']",
                ));
            }
            ("secrets", _) => {
                return Err(ParseError::new(
                    "secrets cannot be read in a CEL expression: write $(secrets.NAME.KEY) by itself in the url, a header or the body of an http step",
                ));
            }
            (root, fields) if is_type(root, fields) => return Ok(()),
            (root, _) => {
                let known = reference::ROOTS
                    .iter()
                    .filter(|root| **root != "secrets")
                    .copied()
                    .collect::<Vec<_>>();
                return Err(ParseError::new(format!(
                    "unknown variable '{}': there are {}; text is written in quotes, and a name with a hyphen steps['my-step'] or steps.my_step",
                    quote(root),
                    known.join(", ")
                )));
            }
        };
        self.facts.references.insert(reference);
        Ok(())
    }

    fn trigger_field(&mut self, first: &str, rest: &[&str]) -> Result<(), ParseError> {
        check_trigger_field(first)?;
        match (first, rest) {
            ("headers" | "bodyFields", _) | (_, []) => {}
            ("body", [field, ..]) => {
                return Err(ParseError::new(format!(
                    "'trigger.body.{0}': trigger.body is text in CEL: write trigger.bodyFields.{0}",
                    quote(field)
                )));
            }
            (_, [field, ..]) => {
                return Err(ParseError::new(format!(
                    "'trigger.{first}.{}' does not exist: trigger.{first} is text and has no fields",
                    quote(field)
                )));
            }
        }
        match self
            .facts
            .uses
            .trigger
            .get_or_insert_with(|| Fields::Some(BTreeSet::new()))
        {
            Fields::All => {}
            Fields::Some(fields) => {
                fields.insert(first.to_owned());
            }
        }
        Ok(())
    }
}

/// Reads `a.b['c'].?d[0]` from the inside out; `None` when its innermost part is no variable.
fn chain(expression: &IdedExpr) -> Option<Chain<'_>> {
    match &expression.expr {
        Expr::Ident(root) => Some(Chain {
            root,
            fields: Vec::new(),
            dynamic: Vec::new(),
        }),
        Expr::Select(select) => {
            let mut chain = chain(&select.operand)?;
            if chain.dynamic.is_empty() {
                chain.fields.push(&select.field);
            }
            Some(chain)
        }
        Expr::Call(call)
            if matches!(
                call.func_name.as_str(),
                operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT
            ) =>
        {
            let [operand, index] = call.args.as_slice() else {
                return None;
            };
            let mut chain = chain(operand)?;
            match &index.expr {
                Expr::Literal(LiteralValue::String(field)) => {
                    if chain.dynamic.is_empty() {
                        chain.fields.push(field.inner());
                    }
                }
                // Also a literal number: what follows it is not needed to tell what is read.
                _ => chain.dynamic.push(index),
            }
            Some(chain)
        }
        _ => None,
    }
}

/// Whether a name is a type's: `int`, `google.protobuf.Timestamp`.
fn is_type(root: &str, fields: &[&str]) -> bool {
    match fields {
        [] => matches!(
            root,
            "bool"
                | "bytes"
                | "double"
                | "int"
                | "list"
                | "map"
                | "null_type"
                | "optional_type"
                | "string"
                | "type"
                | "uint"
        ),
        ["protobuf", "Timestamp" | "Duration"] => root == "google",
        _ => false,
    }
}
