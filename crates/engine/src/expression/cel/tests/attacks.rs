//! What people could write to stall or crash the process ends quickly in an error.

use std::time::{Duration, Instant};

use super::*;
use crate::expression::{Target, Template};
use crate::secret::Credentials;

/// Far more than any of these takes, and far less than any of them would without bounds.
const QUICK: Duration = Duration::from_secs(10);

fn ends_in_error(source: &str, scope: &Scope) {
    let started = Instant::now();
    let result = Condition::parse(source)
        .map_err(|error| error.message)
        .and_then(|condition| condition.evaluate(scope).map_err(|error| error.message));
    let took = started.elapsed();
    let shown: String = source.chars().take(60).collect();
    assert!(result.is_err(), "{shown}: {result:?}");
    assert!(took < QUICK, "{shown}: {took:?}");
}

fn exceeds_budget(source: &str, scope: &Scope) {
    ends_in_error(source, scope);
    let error = holds(source, scope).unwrap_err();
    assert!(
        error.message.contains("exceeds its budget"),
        "{source}: {error}"
    );
}

fn numbers(count: usize) -> String {
    let numbers: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    format!("[{}]", numbers.join(","))
}

#[test]
fn nested_comprehensions_exceed_the_budget() {
    let scope = scope(&numbers(50));
    let list = "trigger.bodyFields";
    for source in [
        format!("{list}.all(a, {list}.all(b, {list}.all(c, {list}.all(d, true))))"),
        format!("{list}.map(a, {list}.map(b, {list}.map(c, [a, b, c]))).size() > 0"),
        format!("{list}.exists(a, {list}.exists(b, {list}.exists(c, {list}.exists(d, false))))"),
        format!(
            "{list}.exists_one(a, {list}.exists_one(b, {list}.exists_one(c, {list}.exists_one(d, true))))"
        ),
        "lists.range(200).map(a, lists.range(200)).flatten().size() > 0".to_owned(),
    ] {
        exceeds_budget(&source, &scope);
    }
}

#[test]
fn an_absorbed_budget_error_still_counts() {
    let scope = scope(&numbers(200));
    let list = "trigger.bodyFields";
    for source in [
        format!("{list}.all(a, {list}.all(b, true)) || true"),
        format!("!({list}.exists(a, {list}.exists(b, false)) && false)"),
        format!("{list}.exists(a, {list}.exists(b, false) || false)"),
    ] {
        exceeds_budget(&source, &scope);
    }
}

#[test]
fn what_doubles_exceeds_the_budget() {
    let scope = scope(&format!("[\"{}\"]", "x".repeat(1000)));
    let bind = |init: &str, grow: &str, times: usize| {
        (0..times).fold(init.to_owned(), |inner, _| {
            format!("[{inner}].map(x, {grow})[0]")
        })
    };
    for source in [
        format!("{} != ''", bind("trigger.body", "x + x", 12)),
        format!("size({}) > 0", bind("[1]", "x + x", 18)),
        format!("size({}) > 0", bind("['a']", "[x, x, x, x, x, x, x, x]", 10)),
        format!("size({}) > 0", bind("trigger.body", "x.replace('x', x)", 3)),
        format!("size({}) > 0", bind("'x'", "'%s%s%s%s'.format([x, x, x, x])", 12)),
        format!("size({}) > 0", bind("trigger.body", "x.split('').join(x)", 3)),
        "trigger.body.replace('', trigger.body) != ''".to_owned(),
        "lists.range(1000000).size() > 0".to_owned(),
        "lists.range(900).map(x, toJson(trigger.bodyFields)).size() > 0".to_owned(),
        "lists.range(900).map(x, json(trigger.body)).map(x, [x, x]).map(x, [x, x, x]).map(x, toJson([x, x])).size() > 0".to_owned(),
    ] {
        exceeds_budget(&source, &scope);
    }
}

#[test]
fn reading_a_large_body_again_and_again_exceeds_the_budget() {
    let large = scope(&numbers(80_000));
    for source in [
        "lists.range(9000).all(x, !trigger.body.contains('zz'))",
        "lists.range(9000).all(x, trigger.bodyFields == trigger.bodyFields)",
        "lists.range(9000).all(x, !('a' in trigger.bodyFields))",
        "lists.range(9000).all(x, trigger.?bodyFields.hasValue())",
        "lists.range(9000).all(x, trigger.body.size() > 0)",
        "lists.range(9000).all(x, trigger.body < trigger.body + 'a' || true)",
        "trigger.bodyFields.distinct().size() > 0",
        "lists.range(9000).all(x, [trigger.bodyFields, trigger.bodyFields].size() == 2)",
        "trigger.bodyFields.all(x, true)",
        "trigger.body.replace('', trigger.body) == ''",
        "lists.range(9000).map(x, 'a').join(trigger.body) == ''",
    ] {
        exceeds_budget(source, &large);
    }
}

#[test]
fn long_sums_are_refused() {
    let scope = scope("");
    ends_in_error(&format!("{} > 0", vec!["1"; 4000].join("+")), &scope);
    ends_in_error(&format!("{} > 0", vec!["1"; 2000].join("+")), &scope);
    ends_in_error(&format!("a{} == 1", ".a".repeat(2000)), &scope);
    ends_in_error(&"true ? true : ".repeat(280), &scope);
    ends_in_error(&"[".repeat(4000), &scope);
    ends_in_error(
        &format!("{}1{} == 1", "[".repeat(2000), "]".repeat(2000)),
        &scope,
    );
    ends_in_error(
        &format!("{}true{}", "[1].all(x, ".repeat(300), ")".repeat(300)),
        &scope,
    );
}

#[test]
fn nested_parentheses_are_refused() {
    let scope = scope("");
    for depth in [8_000, 2_000, 500] {
        ends_in_error(
            &format!("{}true{}", "(".repeat(depth), ")".repeat(depth)),
            &scope,
        );
    }
    let fine = format!("{}true{}", "(".repeat(60), ")".repeat(60));
    assert_eq!(holds(&fine, &scope), Ok(true));
}

#[test]
fn the_deepest_expression_allowed_runs_on_a_small_stack() {
    let source = format!("{}1{} > 0", "size([".repeat(30), "])".repeat(30));
    let small = std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(move || {
            assert_eq!(holds(&source, &scope("")), Ok(true));
        })
        .unwrap();
    small.join().unwrap();
}

#[test]
fn regular_expressions_cannot_stall() {
    let large = scope(&format!("\"{}\"", "a".repeat(500_000)));
    ends_in_error("trigger.body.matches('(a*)*b') || 1 / 0 == 1", &large);
    ends_in_error("'x'.matches('(((a{100}){100}){100}){100}')", &large);
    ends_in_error("'x'.matches(trigger.body + '{1000}')", &large);
    ends_in_error("'x'.matches('\\\\pL{5000}' + '')", &large);
    let small = scope("");
    exceeds_budget(
        "lists.range(2000).all(x, 'a'.matches(string(x)) || true)",
        &small,
    );
}

#[test]
fn json_nested_ten_thousand_deep_is_not_json() {
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let scope = scope(&deep);
    ends_in_error("trigger.bodyFields[0] == 1", &scope);
    ends_in_error("json(trigger.body) == 1", &scope);
}

#[test]
fn error_messages_are_short() {
    let scope = scope(&format!("{{\"a\": \"{}\"}}", "x".repeat(100_000)));
    let error = holds("trigger.bodyFields.a - 1 == 0", &scope).unwrap_err();
    assert!(error.message.len() < 400, "{}", error.message.len());
    let long = format!("{} +", "x".repeat(4000));
    let error = Condition::parse(&long).unwrap_err();
    assert!(error.message.len() < 800, "{}", error.message.len());
}

#[test]
fn many_expressions_in_one_template_share_a_budget() {
    let template = "$(lists.range(4000).all(x, x >= 0))".repeat(1000);
    let template = Template::parse(&template, Target::Text).unwrap();
    let started = Instant::now();
    let error = template.render_text(&scope("")).unwrap_err();
    assert!(error.message.contains("exceeds its budget"), "{error}");
    assert!(started.elapsed() < QUICK);
}

#[test]
fn a_template_cannot_fill_the_memory() {
    let large = scope(&"x".repeat(500_000));
    for target in [Target::Text, Target::Body, Target::Url] {
        let template = Template::parse(&"$(trigger.body) ".repeat(4000), target).unwrap();
        let started = Instant::now();
        let error = template
            .render(&large, &Credentials::default())
            .unwrap_err();
        assert!(error.message.contains("larger than"), "{error}");
        assert!(started.elapsed() < QUICK);
    }
}
