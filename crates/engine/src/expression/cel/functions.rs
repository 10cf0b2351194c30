//! The functions that expressions may call, and with how many arguments: an unknown one is refused when it is read.

/// How often a function's arguments may number, called globally and on a target; an empty list where it cannot be
/// called that way.
struct Signature {
    name: &'static str,
    global: &'static [usize],
    member: &'static [usize],
}

const fn global(name: &'static str, global: &'static [usize]) -> Signature {
    Signature {
        name,
        global,
        member: &[],
    }
}

const fn member(name: &'static str, member: &'static [usize]) -> Signature {
    Signature {
        name,
        global: &[],
        member,
    }
}

const fn both(name: &'static str, global: &'static [usize], member: &'static [usize]) -> Signature {
    Signature {
        name,
        global,
        member,
    }
}

/// Names with a dot are called on the namespace: `math.abs(x)`.
static FUNCTIONS: &[Signature] = &[
    global("base64.decode", &[1]),
    global("base64.encode", &[1]),
    global("bool", &[1]),
    global("bytes", &[1]),
    global("double", &[1]),
    global("duration", &[1]),
    global("dyn", &[1]),
    global("int", &[1]),
    global("json", &[1]),
    global("lists.range", &[1]),
    global("math.@max", &[1, 2]),
    global("math.@min", &[1, 2]),
    global("math.abs", &[1]),
    global("math.bitAnd", &[2]),
    global("math.bitNot", &[1]),
    global("math.bitOr", &[2]),
    global("math.bitShiftLeft", &[2]),
    global("math.bitShiftRight", &[2]),
    global("math.bitXor", &[2]),
    global("math.ceil", &[1]),
    global("math.floor", &[1]),
    global("math.isFinite", &[1]),
    global("math.isInf", &[1]),
    global("math.isNaN", &[1]),
    global("math.round", &[1]),
    global("math.sign", &[1]),
    global("math.sqrt", &[1]),
    global("math.trunc", &[1]),
    global("now", &[0]),
    global("optional.none", &[0]),
    global("optional.of", &[1]),
    global("optional.ofNonZeroValue", &[1]),
    global("string", &[1]),
    global("strings.quote", &[1]),
    global("timestamp", &[1]),
    global("toJson", &[1]),
    global("type", &[1]),
    global("uint", &[1]),
    both("matches", &[2], &[1]),
    both("size", &[1], &[0]),
    member("@sortByAssociatedKeys", &[1]),
    member("charAt", &[1]),
    member("contains", &[1]),
    member("distinct", &[0]),
    member("endsWith", &[1]),
    member("flatten", &[0, 1]),
    member("format", &[1]),
    member("getDate", &[0, 1]),
    member("getDayOfMonth", &[0, 1]),
    member("getDayOfWeek", &[0, 1]),
    member("getDayOfYear", &[0, 1]),
    member("getFullYear", &[0, 1]),
    member("getHours", &[0, 1]),
    member("getMilliseconds", &[0, 1]),
    member("getMinutes", &[0, 1]),
    member("getMonth", &[0, 1]),
    member("getSeconds", &[0, 1]),
    member("hasValue", &[0]),
    member("indexOf", &[1, 2]),
    member("join", &[0, 1]),
    member("lastIndexOf", &[1, 2]),
    member("lowerAscii", &[0]),
    member("or", &[1]),
    member("orValue", &[1]),
    member("replace", &[2, 3]),
    member("reverse", &[0]),
    member("slice", &[2]),
    member("sort", &[0]),
    member("split", &[1, 2]),
    member("startsWith", &[1]),
    member("substring", &[1, 2]),
    member("trim", &[0]),
    member("upperAscii", &[0]),
    member("value", &[0]),
];

/// Macros: what is left of one after parsing was called with a wrong number of arguments.
static MACROS: &[Signature] = &[
    global("has", &[1]),
    member("all", &[2]),
    member("exists", &[2]),
    member("existsOne", &[2]),
    member("exists_one", &[2]),
    member("filter", &[2]),
    member("map", &[2, 3]),
    member("optFlatMap", &[2]),
    member("optMap", &[2]),
    member("sortBy", &[2]),
    global("math.greatest", &[1, 2, 3]),
    global("math.least", &[1, 2, 3]),
];

/// Whether some function's name begins with `<name>.`.
pub(super) fn is_namespace(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| {
        function
            .name
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}

/// Checks a call. `is_member` when it is called on a target that is no namespace.
pub(super) fn check(name: &str, is_member: bool, arguments: usize) -> Result<(), String> {
    let known = FUNCTIONS
        .iter()
        .chain(MACROS)
        .find(|function| function.name == name);
    let Some(function) = known else {
        let close = FUNCTIONS
            .iter()
            .chain(MACROS)
            .map(|function| function.name)
            .filter(|candidate| !candidate.contains('@') && is_close(candidate, name))
            .min();
        return Err(match close {
            Some(close) => format!("unknown function '{name}'; did you mean '{close}'?"),
            None => format!("unknown function '{name}'"),
        });
    };
    let (fitting, other) = if is_member {
        (function.member, function.global)
    } else {
        (function.global, function.member)
    };
    if fitting.contains(&arguments) {
        return Ok(());
    }
    if fitting.is_empty() && !other.is_empty() {
        return Err(if is_member {
            format!("'{name}' is not called on a value: write {name}(...)")
        } else {
            format!("'{name}' is called on a value: write VALUE.{name}(...)")
        });
    }
    let takes: Vec<String> = fitting.iter().map(usize::to_string).collect();
    Err(format!(
        "'{name}' takes {} argument{}, not {arguments}",
        takes.join(" or "),
        if fitting == [1] { "" } else { "s" },
    ))
}

/// Equal but for case and underscores, or one letter away.
fn is_close(left: &str, right: &str) -> bool {
    let fold = |text: &str| text.replace('_', "").to_ascii_lowercase();
    let (left, right) = (fold(left), fold(right));
    if left == right {
        return true;
    }
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let prefix = left
        .iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count();
    let suffix = left[prefix..]
        .iter()
        .rev()
        .zip(right[prefix..].iter().rev())
        .take_while(|(left, right)| left == right)
        .count();
    let longer = left.len().max(right.len());
    longer > 3 && longer - prefix - suffix <= 1
}

/// Calls that fit the table, one per entry and number of arguments, for the test that the environment knows them all.
#[cfg(test)]
pub(super) fn sample_calls() -> Vec<String> {
    let mut calls = Vec::new();
    for function in FUNCTIONS
        .iter()
        .filter(|function| !function.name.contains('@'))
    {
        for count in function.global {
            calls.push(format!(
                "{}({})",
                function.name,
                vec!["1"; *count].join(", ")
            ));
        }
        for count in function.member {
            calls.push(format!(
                "'a'.{}({})",
                function.name,
                vec!["1"; *count].join(", ")
            ));
        }
    }
    calls
}
