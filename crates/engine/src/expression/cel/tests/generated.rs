//! Expressions that a generator makes: whatever they are, parsing and evaluating end soon and never panic.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// Valid syntax around values of every type, mostly without sense.
fn expressions() -> impl Strategy<Value = String> {
    let leaves = proptest::sample::select(vec![
        "1",
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615u",
        "1u",
        "0.0",
        "1e308",
        "''",
        "'a'",
        "'\u{1f600}x'",
        "b'\\xff'",
        "true",
        "false",
        "null",
        "[]",
        "{}",
        "[1, 'a', null]",
        "{'a': 1, 1: 2}",
        "x",
        "y",
        "now()",
        "trigger",
        "trigger.body",
        "trigger.bodyFields",
        "trigger.bodyFields.a",
        "trigger.headers",
        "trigger.?bodyFields.?b",
        "params",
        "params.p",
        "run",
        "duration('1h')",
        "duration('-9223372036s')",
        "timestamp('9999-12-31T23:59:59Z')",
        "optional.none()",
        "optional.of(1)",
        "int",
        "string",
        "type(1)",
    ])
    .prop_map(str::to_owned);
    leaves.prop_recursive(5, 40, 3, |inner| {
        let unary = proptest::sample::select(vec![
            "!(#)",
            "-(#)",
            "(#).size()",
            "size(#)",
            "string(#)",
            "int(#)",
            "uint(#)",
            "double(#)",
            "bool(#)",
            "bytes(#)",
            "type(#)",
            "dyn(#)",
            "(#).reverse()",
            "(#).sort()",
            "(#).distinct()",
            "(#).flatten()",
            "(#).join()",
            "(#).trim()",
            "(#).upperAscii()",
            "(#).value()",
            "(#).hasValue()",
            "json(#)",
            "toJson(#)",
            "base64.encode(#)",
            "base64.decode(#)",
            "math.abs(#)",
            "math.ceil(#)",
            "math.sqrt(#)",
            "lists.range(#)",
            "strings.quote(#)",
            "timestamp(#)",
            "duration(#)",
            "(#).getHours()",
            "(#).getMilliseconds()",
            "optional.of(#)",
            "optional.ofNonZeroValue(#)",
            "has((#).a)",
            "(#).a",
            "(#).?a",
            "[#]",
            "{'k': #}",
            "[?#]",
            "{?'k': #}",
            "(#).flatten(3)",
            "math.isNaN(#)",
            "math.bitNot(#)",
        ]);
        let binary = proptest::sample::select(vec![
            "(#) + (#)",
            "(#) - (#)",
            "(#) * (#)",
            "(#) / (#)",
            "(#) % (#)",
            "(#) == (#)",
            "(#) != (#)",
            "(#) < (#)",
            "(#) >= (#)",
            "(#) in (#)",
            "(#) && (#)",
            "(#) || (#)",
            "(#)[#]",
            "(#)[?#]",
            "(#).contains(#)",
            "(#).startsWith(#)",
            "(#).matches(#)",
            "matches(#, #)",
            "(#).split(#)",
            "(#).join(#)",
            "(#).indexOf(#)",
            "(#).lastIndexOf(#)",
            "(#).charAt(#)",
            "(#).substring(#)",
            "(#).format([#])",
            "(#).or(#)",
            "(#).orValue(#)",
            "math.greatest(#, #)",
            "math.bitShiftLeft(#, #)",
            "math.bitShiftRight(#, #)",
            "[#, #]",
            "{#: #}",
            "(#).all(x, #)",
            "(#).exists(x, #)",
            "(#).exists_one(x, #)",
            "(#).map(x, #)",
            "(#).filter(x, #)",
            "(#).sortBy(x, #)",
            "(#).optMap(x, #)",
            "(#).optFlatMap(x, #)",
            "(#).getFullYear(#)",
            "(#).split(#, 2)",
            "(#).all(y, #)",
            "(#).map(y, #)",
        ]);
        let ternary = proptest::sample::select(vec![
            "(#) ? (#) : (#)",
            "(#).map(x, #, #)",
            "(#).replace(#, #)",
            "(#).substring(#, #)",
            "(#).slice(#, #)",
            "(#).replace(#, #, 2)",
            "(#).indexOf(#, #)",
            "math.least(#, #, #)",
        ]);
        let fill = |shape: &str, parts: Vec<String>| {
            let mut parts = parts.into_iter();
            shape
                .chars()
                .map(|c| match c {
                    '#' => parts.next().unwrap_or_default(),
                    c => c.to_string(),
                })
                .collect::<String>()
        };
        prop_oneof![
            (unary, inner.clone()).prop_map(move |(shape, part)| fill(shape, vec![part])),
            (binary, inner.clone(), inner.clone())
                .prop_map(move |(shape, left, right)| fill(shape, vec![left, right])),
            (ternary, inner.clone(), inner.clone(), inner)
                .prop_map(move |(shape, a, b, c)| fill(shape, vec![a, b, c])),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_expression_ends_soon_and_without_panic(body in expressions()) {
        let mut scope = scope(r#"{"a": [1, {"b": "c"}, null], "b": {"a": 2.5}}"#);
        scope.params = Arc::new(BTreeMap::from([("p".to_owned(), "v".to_owned())]));
        let started = Instant::now();
        // Bind what may occur free.
        let source = format!("[1].map(x, ['s'].map(y, {body}))");
        if let Ok(program) = Program::for_flow(&source) {
            if let Ok(value) = program.value(&View::new(&scope, None)) {
                let _ = value.text();
            }
            let again = program.value(&View::new(&scope, None)).map(|value| value.text().into_owned());
            let first = program.value(&View::new(&scope, None)).map(|value| value.text().into_owned());
            prop_assert_eq!(again, first, "{} gives different values", source);
        }
        prop_assert!(started.elapsed() < Duration::from_secs(5), "{} took {:?}", source, started.elapsed());
    }
}
