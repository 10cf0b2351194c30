//! The facade: what is refused, what is paid for, how values look.

mod attacks;
mod conformance;
mod generated;
mod prices;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::effect::KeyRef;
use crate::event::Event;
use crate::expression::StepView;

fn scope(body: &str) -> Scope {
    Scope {
        event: Arc::new(Event {
            body: body.to_owned(),
            headers: [("X-Github-Event".to_owned(), "push".to_owned())].into(),
            ..Event::default()
        }),
        ..Scope::default()
    }
}

fn holds(source: &str, scope: &Scope) -> Result<bool, EvalError> {
    Condition::parse(source)
        .unwrap_or_else(|error| panic!("{source}: {error}"))
        .evaluate(scope)
}

fn text(source: &str, scope: &Scope) -> String {
    let program = Program::for_flow(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let view = View::new(scope, None);
    let value = program
        .value(&view)
        .unwrap_or_else(|error| panic!("{source}: {error}"));
    value.text().into_owned()
}

#[test]
fn every_function_of_the_table_is_known_to_the_environment() {
    for call in functions::sample_calls() {
        let program = Program::for_flow(&call).unwrap_or_else(|error| panic!("{call}: {error}"));
        if let Err(error) = program.value(&View::new(&scope(""), None)) {
            assert!(
                !error.message.contains("undeclared"),
                "{call}: {}",
                error.message
            );
        }
    }
}

#[test]
fn unknown_names_and_wrong_counts_are_refused_with_what_to_do() {
    for (source, message) in [
        ("startswith('a', 'b')", "did you mean 'startsWith'?"),
        ("foo(1)", "unknown function 'foo'"),
        ("size()", "'size' takes 1 argument, not 0"),
        ("'a'.size(1)", "'size' takes 0 arguments, not 1"),
        ("'a'.split()", "'split' takes 1 or 2 arguments, not 0"),
        ("[1].all(x)", "'all' takes 2 arguments, not 1"),
        ("contains('ab', 'a')", "write VALUE.contains(...)"),
        ("'a'.string()", "write string(...)"),
        ("math.abs()", "'math.abs' takes 1 argument, not 0"),
        ("math.foo(1)", "unknown function 'math.foo'"),
        (
            "foo == 1",
            "unknown variable 'foo': there are trigger, steps, params, run, configmaps",
        ),
        ("[1].exists(x, y == 1)", "unknown variable 'y'"),
        ("secrets.a.b == 'x'", "write $(secrets.NAME.KEY) by itself"),
        ("size(secrets) > 0", "secrets cannot be read"),
        (
            "steps[trigger.body].status == ''",
            "'steps' needs the name of a step",
        ),
        ("steps.a == 1", "'steps.a' needs a field"),
        (
            "steps.a.foo == 1",
            "a step has results.NAME, status, message and attempts",
        ),
        ("trigger.body.x == 1", "write trigger.bodyFields.x"),
        ("trigger.foo == 1", "'trigger.foo' does not exist"),
        ("trigger.method.x == 1", "trigger.method is text"),
        ("run.id == ''", "run has name, namespace, uid"),
        ("configmaps.a == ''", "'configmaps' needs a name and a key"),
        ("Foo{a: 1} == 1", "unknown type 'Foo'"),
        ("1 +", "'1 +' is not a CEL expression: line 1"),
        ("'a'.matches('(')", "'(' is not a regular expression"),
        ("", "the expression is empty"),
        ("self.x == 1", "unknown variable 'self'"),
    ] {
        let error = Condition::parse(source).expect_err(source);
        assert!(error.message.contains(message), "{source}: {error}");
    }
}

#[test]
fn references_inside_an_expression_are_found() {
    let condition = Condition::parse(
        "steps['charge-card'].results.id != '' && has(steps.b.results.x) && trigger.headers['X'] == '' \
         && trigger.?bodyFields.?a.orValue('') == params.p && [run.name].exists(trigger, trigger == '') \
         && configmaps['c']['app.yaml'] == '' && trigger.bodyFields.items[0].sku == ''",
    )
    .unwrap();
    let step = |step: &str, field: &str| Reference::Step {
        step: step.to_owned(),
        field: field.to_owned(),
    };
    let mut expected = vec![
        step("charge-card", "results.id"),
        step("b", "results.x"),
        Reference::Trigger("headers.X".to_owned()),
        Reference::Trigger("bodyFields.a".to_owned()),
        Reference::Trigger("bodyFields.items".to_owned()),
        Reference::Param("p".to_owned()),
        Reference::Run("name".to_owned()),
        Reference::ConfigMap(KeyRef {
            name: "c".to_owned(),
            key: "app.yaml".to_owned(),
        }),
    ];
    expected.sort();
    assert_eq!(condition.references(), expected);
}

#[test]
fn scalars_of_trigger_are_strings_and_empty_when_not_applicable() {
    let scope = scope("");
    for name in crate::expression::reference::TRIGGER_SCALARS {
        let source = format!("type(trigger.{name}) == string && has(trigger.{name})");
        assert_eq!(holds(&source, &scope), Ok(true), "{name}");
    }
    assert_eq!(holds("trigger.partition == ''", &scope), Ok(true));
    assert_eq!(holds("trigger.source == 'manual'", &scope), Ok(true));
}

#[test]
fn header_lookup_and_in_ignore_case() {
    let scope = scope("");
    for source in [
        "trigger.headers['x-github-event'] == 'push'",
        "trigger.headers['X-GITHUB-EVENT'] == 'push'",
        "'x-GitHub-event' in trigger.headers",
        "!('x-other' in trigger.headers)",
        "trigger.headers.exists(name, name == 'X-Github-Event')",
        "trigger.headers.?missing.orValue('none') == 'none'",
        "size(trigger.headers) == 1",
        "toJson(trigger.headers) == '{\"X-Github-Event\":\"push\"}'",
    ] {
        assert_eq!(holds(source, &scope), Ok(true), "{source}");
    }
}

#[test]
fn body_field_numbers_are_double_and_int_only_beyond_2_to_the_53() {
    let scope = scope(
        r#"{"a": 1, "b": 9007199254740992, "c": 9007199254740993, "d": 1.5, "e": 18446744073709551615}"#,
    );
    for source in [
        "type(trigger.bodyFields.a) == double",
        "type(trigger.bodyFields.b) == double",
        "type(trigger.bodyFields.c) == int",
        "type(trigger.bodyFields.e) == uint",
        "trigger.bodyFields.c == 9007199254740993",
        "trigger.bodyFields.a == 1 && trigger.bodyFields.a == 1.0 && trigger.bodyFields.a < 2",
        "trigger.bodyFields.d * 2.0 == 3.0",
        "type(json('{\"a\": 1}').a) == int",
        "type(json('18446744073709551615')) == uint",
        "json('{\"status\": 200}').status == 200",
        "trigger.bodyFields.a == json('1')",
    ] {
        assert_eq!(holds(source, &scope), Ok(true), "{source}");
    }
}

#[test]
fn body_fields_are_empty_without_a_json_or_form_body() {
    for body in ["", "plain text", "3", "\"text\""] {
        assert_eq!(
            holds("trigger.bodyFields == {}", &scope(body)),
            Ok(true),
            "{body}"
        );
    }
    assert_eq!(
        holds("size(trigger.bodyFields) == 2", &scope("[1, 2]")),
        Ok(true)
    );
}

#[test]
fn a_missing_field_is_an_error_unless_guarded() {
    let scope = scope("{}");
    let error = holds("trigger.bodyFields.x == 1", &scope).unwrap_err();
    assert_eq!(error.reason, crate::run::reason::EVAL_ERROR);
    assert!(error.message.contains("no such key: x"), "{error}");
    assert_eq!(
        holds(
            "has(trigger.bodyFields.x) && trigger.bodyFields.x == 1",
            &scope
        ),
        Ok(false)
    );
    assert_eq!(
        holds("trigger.bodyFields.?x.orValue(1) == 1", &scope),
        Ok(true)
    );
}

#[test]
fn a_condition_that_is_not_boolean_is_an_error() {
    for source in ["'true'", "1", "null", "trigger.body"] {
        let error = holds(source, &scope("x")).unwrap_err();
        assert!(
            error.message.contains("a condition gives true or false"),
            "{error}"
        );
    }
}

#[test]
fn steps_and_results_may_be_written_with_underscores() {
    let step = StepView {
        status: "Succeeded".to_owned(),
        attempts: 2,
        results: BTreeMap::from([("order-id".to_owned(), "A1".to_owned())]),
        ..StepView::default()
    };
    let flow = [("charge-card", step)];
    let scope = Scope {
        steps: Arc::new(BTreeMap::from(flow.map(|(name, view)| {
            (crate::flow::StepName::parse(name).unwrap(), Arc::new(view))
        }))),
        ..Scope::default()
    };
    for source in [
        "steps['charge-card'].results['order-id'] == 'A1'",
        "steps.charge_card.results.order_id == 'A1'",
        "steps.charge_card.status == 'Succeeded' && steps.charge_card.attempts == 2",
        "!has(steps.charge_card.results.other)",
    ] {
        assert_eq!(holds(source, &scope), Ok(true), "{source}");
    }
}

#[test]
fn values_become_text_as_templates_insert_them() {
    let mut scope = scope(r#"{"total": 4850.00, "z": {"b": 1.0, "a": [null]}}"#);
    scope.now = "2026-01-02T03:04:05.5Z".parse().unwrap();
    for (source, expected) in [
        ("1 + 1", "2"),
        ("0.5 + 0.25", "0.75"),
        ("trigger.bodyFields.total", "4850"),
        ("true", "true"),
        ("null", ""),
        ("b'hi'", "aGk="),
        ("trigger.bodyFields.z", r#"{"a":[null],"b":1}"#),
        ("now()", "2026-01-02T03:04:05.500Z"),
        ("now() - duration('1h')", "2026-01-02T02:04:05.500Z"),
        ("duration('90m')", "5400s"),
        ("duration('1.5s')", "1.5s"),
        ("optional.none()", ""),
        ("optional.of('x')", "x"),
        ("type(1)", "int"),
        ("toJson({'b': 1, 'a': 'x\"'})", r#"{"a":"x\"","b":1}"#),
        ("base64.encode('hi') + base64.encode(b'hi')", "aGk=aGk="),
        ("string(base64.decode('aGk='))", "hi"),
        ("['a', 'b'].map(x, x + x).join('-')", "aa-bb"),
        (
            "{'d': 1, 'b': 1, 'a': 2, 'c': 3, 'f': 4, 'e': 5, 'h': 6, 'g': 7}.map(k, k).join()",
            "abcdefgh",
        ),
        ("'%d %s'.format([1, 'a'])", "1 a"),
        ("[3, 1, 2].sort()", "[1,2,3]"),
        ("math.greatest(1, 3, 2)", "3"),
        ("json(toJson(trigger.bodyFields)).total", "4850"),
        (r#""$(""#, "$("),
        ("'abc'.replace('b', 'x')", "axc"),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
    ] {
        assert_eq!(text(source, &scope), expected, "{source}");
    }
}

#[test]
fn a_missing_configmap_is_named() {
    let error = holds("configmaps.a['b.c'] == ''", &scope("")).unwrap_err();
    assert_eq!(error.reason, crate::run::reason::REFERENCE_NOT_FOUND);
    assert!(
        error.message.contains("configmap a has no key b.c"),
        "{error}"
    );
}

#[test]
fn rules_see_self_and_old_self() {
    let value = serde_json::json!({
        "type": "http", "http": {"url": "https://a"}, "n": 3, "namespace": "x", "a-b": 1,
        "steps": [{"name": "a"}, {"name": "b"}],
    });
    for (rule, expected) in [
        ("self.type != 'http' || has(self.http)", true),
        ("has(self.wait)", false),
        ("self.n >= 1 && self.n <= 3 && type(self.n) == int", true),
        (
            "self.steps.all(s, s.name.matches('^[a-z]+$') && size(s.name) < 64)",
            true,
        ),
        ("self.steps.exists_one(s, s.name == 'b')", true),
        ("self.http.url.startsWith('https://')", true),
        ("self.__namespace__ == 'x' && self.a__dash__b == 1", true),
        ("self.n in [1, 2]", false),
    ] {
        let compiled = Rule::compile(rule).unwrap();
        assert_eq!(compiled.check(&value, None), Ok(expected), "{rule}");
    }
    let transition = Rule::compile("self.n == oldSelf.n").unwrap();
    assert!(transition.is_transition());
    assert_eq!(transition.check(&value, None), Ok(true));
    assert_eq!(transition.check(&value, Some(&value)), Ok(true));
    assert_eq!(
        transition.check(&value, Some(&serde_json::json!({"n": 4}))),
        Ok(false)
    );
    assert!(Rule::compile("self.x == trigger.y").is_err());
    assert!(
        Rule::compile("self.missing == 1")
            .unwrap()
            .check(&value, None)
            .is_err()
    );
}

#[test]
fn rules_and_conditions_may_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Rule>();
    shared::<Condition>();
    shared::<crate::expression::Template>();
    shared::<crate::expression::ResultMapping>();
}
