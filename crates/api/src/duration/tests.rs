use std::time::Duration;

use proptest::prelude::*;
use regex::Regex;

use super::{DurationError, format, parse};
use crate::schema;

#[test]
fn durations_are_read_as_go_reads_them() {
    let ns = Duration::from_nanos;
    for (text, expected) in [
        ("0", ns(0)),
        ("+0", ns(0)),
        ("-0", ns(0)),
        ("-0s", ns(0)),
        ("0s", ns(0)),
        ("5s", Duration::from_secs(5)),
        ("+5s", Duration::from_secs(5)),
        ("300ms", Duration::from_millis(300)),
        ("1h30m", Duration::from_secs(5400)),
        ("1h15m30.918s", Duration::from_millis(4_530_918)),
        ("1.5h", Duration::from_secs(5400)),
        (".5s", Duration::from_millis(500)),
        ("5.s", Duration::from_secs(5)),
        ("1.0000000000000000000000001s", Duration::from_secs(1)),
        ("0.100000000000000000000h", Duration::from_secs(360)),
        ("0.830103483285477580700h", ns(2_988_372_539_827)),
        ("12us", ns(12_000)),
        ("12µs", ns(12_000)),
        ("12μs", ns(12_000)),
        ("7ns", ns(7)),
        ("0.9ns", ns(0)),
        ("30s1m", Duration::from_secs(90)),
        ("9223372036854775807ns", ns(i64::MAX as u64)),
        ("2d", Duration::from_secs(172_800)),
        ("1d12h", Duration::from_secs(129_600)),
        ("0.5d", Duration::from_secs(43_200)),
    ] {
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
}

#[test]
fn texts_that_are_no_duration_are_refused() {
    for text in [
        "",
        "3",
        "-",
        "+",
        "s",
        ".",
        "-.",
        ".s",
        "+.s",
        "1h-30m",
        "1 h",
        " 1h",
        "1h ",
        "10 minutes",
        "1w",
        "1H",
        "1h30",
        "one",
        "1e3s",
        "0x1s",
        "١s",
        "1.2.3s",
        "\u{85}",
        "1mm",
    ] {
        assert_eq!(
            parse(text),
            Err(DurationError::Malformed(text.to_owned())),
            "{text:?}"
        );
    }
}

#[test]
fn negative_and_endless_durations_are_refused() {
    assert_eq!(parse("-1s").unwrap_err().to_string(), "'-1s' is negative");
    for text in [
        "9223372036854775808ns",
        "106752d",
        "99999999999999999999999999999999999999999999999999d",
    ] {
        assert_eq!(
            parse(text),
            Err(DurationError::TooLong(text.to_owned())),
            "{text}"
        );
    }
}

#[test]
fn an_error_quotes_no_more_than_64_characters() {
    let long = "µ".repeat(10_000);
    let message = parse(&long).unwrap_err().to_string();
    assert!(message.starts_with("'µ"));
    assert!(message.chars().count() < 150, "{message}");
}

#[test]
fn durations_are_written_for_people_in_at_most_two_units() {
    for (millis, expected) in [
        (0, "0ms"),
        (850, "850ms"),
        (999, "999ms"),
        (1000, "1.0s"),
        (3299, "3.2s"),
        (59_999, "59.9s"),
        (60_000, "1m"),
        (125_000, "2m5s"),
        (3_600_000, "1h"),
        (5_400_000, "1h30m"),
        (86_400_000, "1d"),
        (183_600_000, "2d3h"),
    ] {
        assert_eq!(format(Duration::from_millis(millis)), expected);
    }
    assert_eq!(format(Duration::from_micros(999)), "0ms");
    assert!(!format(Duration::MAX).is_empty());
}

/// Texts that are nearly durations.
fn near_duration() -> impl Strategy<Value = String> {
    let part = proptest::sample::select(vec![
        "0",
        "1",
        "30",
        "007",
        ".",
        ".5",
        "1.",
        "1.5",
        "+",
        "-",
        "ns",
        "us",
        "µs",
        "μs",
        "ms",
        "s",
        "m",
        "h",
        "d",
        "w",
        " ",
        "99999999999999999999",
    ]);
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_schema_lets_in_what_the_parser_reads(text in near_duration()) {
        // Go reads a minus, and the schema does not let one in.
        prop_assume!(!text.starts_with('-'));
        let let_in = Regex::new(schema::DURATION).unwrap().is_match(&text);
        let read = match parse(&text) {
            Ok(_) | Err(DurationError::TooLong(_)) => true,
            Err(DurationError::Malformed(_) | DurationError::Negative(_)) => false,
        };
        prop_assert_eq!(let_in, read, "{}", text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn what_is_written_for_people_is_read_again(millis in 0..10_000_000_000_u64) {
        let written = format(Duration::from_millis(millis));
        let read = parse(&written).unwrap();
        prop_assert!(read <= Duration::from_millis(millis), "{}", written);
        prop_assert!(Duration::from_millis(millis) - read < Duration::from_secs(3600), "{}", written);
    }
}
