//! What things cost.

use super::*;

/// The units that an expression draws from an ample tank.
fn price(source: &str, scope: &Scope) -> i64 {
    let program = Program::for_flow(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let fuel = Fuel::new(1_000_000_000, program.0.patterns.clone());
    let view = View::new(scope, None);
    program
        .run(
            &fuel,
            |context| variables::bind(context, &program.0.uses, &view),
            |_| (),
        )
        .unwrap_or_else(|error| panic!("{source}: {error}"));
    fuel.used()
}

#[test]
fn a_unit_is_a_loop_step_a_call_or_ten_bytes_or_elements_produced() {
    let scope = scope(&format!("[{}1]", "1,".repeat(24_999)));
    for (source, least, most) in [
        ("trigger.method == 'POST' && trigger.body != ''", 0, 0),
        ("1 + 1 == 2", 1, 2),
        ("size('abc')", 1, 1),
        ("[1, 2, 3].all(x, x > 0)", 3, 4),
        ("[1, 2, 3].map(x, x)", 3, 4),
        ("[1, 2, 3].filter(x, x > 1)", 3, 8),
        ("[1, 2, 3].exists_one(x, x == 1)", 3, 8),
        // 50 KB of text.
        ("trigger.body + 'x'", 5_000, 5_200),
        ("trigger.body.upperAscii()", 5_000, 5_200),
        ("trigger.body.replace('1', '2')", 5_000, 7_700),
        ("[trigger.body].join('x')", 5_000, 5_200),
        ("string(bytes(trigger.body))", 10_000, 10_400),
        ("trigger.body.contains('x')", 50, 60),
        ("trigger.body.matches('x')", 500, 600),
        ("trigger.body < trigger.body", 100, 110),
        ("size(trigger.body)", 50, 60),
        // 25,000 elements.
        ("trigger.bodyFields + trigger.bodyFields", 5_000, 6_000),
        ("trigger.bodyFields == trigger.bodyFields", 800, 900),
        ("size(trigger.bodyFields)", 1, 1),
        ("2 in trigger.bodyFields", 400, 450),
        ("[trigger.bodyFields]", 400, 450),
        ("trigger.?bodyFields", 400, 450),
        ("trigger.bodyFields.all(x, true)", 25_000, 26_000),
        ("trigger.bodyFields[0] == 1.0", 0, 0),
        // Paid before and after.
        ("lists.range(20000)", 4_000, 5_000),
    ] {
        let price = price(source, &scope);
        assert!(
            (least..=most).contains(&price),
            "{source} costs {price}, not {least} to {most}"
        );
    }
}
