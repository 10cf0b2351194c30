//! Whatever text an event brings survives where it lands, and nothing in it is expanded.

use std::sync::Arc;

use kubezap_engine::expression::{Scope, Target};
use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use serde_json::Value as Json;

use crate::setup::{CallOf, params, rendered_in, scope, text};

/// Text that is full of what could break out of its place.
fn texts() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        any::<String>(),
        proptest::sample::select(vec![
            "$(",
            ")",
            "$(params.v)",
            "$(secrets.crm.token)",
            "\"",
            "\\",
            "\\\"",
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "/",
            "..",
            ".",
            "%2e",
            "%",
            "?",
            "#",
            "&",
            "=",
            "+",
            " ",
            "\r\n",
            "\0",
            "<",
            ">",
            "'",
            "]]>",
            "\u{2028}",
            "null",
            "1",
            "true",
            "{\"a\":1}",
            "@",
            "//",
            "\u{1f600}",
        ])
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(parts, 0..6).prop_map(|parts| parts.concat())
}

fn with(value: &str) -> Scope {
    Scope {
        params: Arc::new(params(&[("v", value)])),
        ..scope()
    }
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

proptest! {
    #[test]
    fn text_survives_in_a_json_string(value in texts()) {
        let body = rendered_in(r#"{"a": "<$(params.v)>", "b": 1}"#, Target::Body, &with(&value)).unwrap();
        let json: Json = serde_json::from_str(&body).unwrap();
        prop_assert_eq!(json, serde_json::json!({"a": format!("<{value}>"), "b": 1}));
    }

    #[test]
    fn text_survives_as_a_json_value(value in texts()) {
        let body = rendered_in(r#"{"a": $(params.v), "b": 1}"#, Target::Body, &with(&value)).unwrap();
        let json: Json = serde_json::from_str(&body).unwrap();
        let expected = serde_json::from_str(&value).unwrap_or(Json::String(value));
        prop_assert_eq!(json, serde_json::json!({"a": expected, "b": 1}));
    }

    #[test]
    fn text_survives_in_a_form(value in texts()) {
        let request = CallOf {
            url: "https://h/",
            headers: &[("Content-Type", "application/x-www-form-urlencoded")],
            body: Some("a=$(params.v)&b=1"),
        }
        .render_in(with(&value))
        .unwrap();
        let body = text(request.body.as_ref().unwrap());
        let fields: Vec<(String, String)> = body
            .split('&')
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(name, value)| (decode(name), decode(value)))
            .collect();
        prop_assert_eq!(fields, vec![("a".to_owned(), value), ("b".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn text_survives_in_a_query_and_a_fragment(value in texts()) {
        let url = rendered_in("https://h/p?a=$(params.v)&b=1#$(params.v)", Target::Url, &with(&value)).unwrap();
        let (query, fragment) = url.strip_prefix("https://h/p?a=").unwrap().split_once('#').unwrap();
        prop_assert_eq!(decode(query.strip_suffix("&b=1").unwrap()), value.clone());
        prop_assert_eq!(decode(fragment), value);
        prop_assert!(!fragment.contains('#') && url.bytes().all(|byte| byte > b' ' && byte < 0x7f));
    }

    #[test]
    fn text_survives_in_a_path_or_fails_the_step(value in texts()) {
        let dots = value.split('/').any(|segment| segment == "." || segment == "..");
        match rendered_in("https://h/a/$(params.v)/b?c=1", Target::Url, &with(&value)) {
            Ok(url) => {
                let path = url.strip_prefix("https://h/a/").unwrap().strip_suffix("/b?c=1").unwrap();
                prop_assert_eq!(decode(path), value);
                prop_assert!(!dots);
                prop_assert!(path.bytes().all(|byte| byte > b' ' && byte < 0x7f && !b"?#\\".contains(&byte)));
            }
            Err(error) => prop_assert!(dots, "{value:?}: {error}"),
        }
    }

    #[test]
    fn text_cannot_leave_the_authority(value in texts()) {
        let url = rendered_in("https://$(params.v)/b", Target::Url, &with(&value)).unwrap();
        let authority = url.strip_prefix("https://").unwrap().strip_suffix("/b").unwrap();
        prop_assert!(authority.bytes().all(|byte| !b"/?#@\\ ".contains(&byte)), "{}", url);
        prop_assert_eq!(decode(authority), value);
    }

    #[test]
    fn text_survives_in_xml(value in texts()) {
        let body = rendered_in("<a b=\"$(params.v)\">$(params.v)</a>", Target::Body, &with(&value)).unwrap();
        let rest = body.strip_prefix("<a b=\"").unwrap().strip_suffix("</a>").unwrap();
        let (attribute, content) = rest.split_once("\">").unwrap();
        for escaped in [attribute, content] {
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            let plain = escaped
                .replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"")
                .replace("&apos;", "'").replace("&amp;", "&");
            prop_assert_eq!(&plain, &value);
        }
    }

    #[test]
    fn text_is_a_header_value_or_fails_the_step(value in texts()) {
        let control = value.chars().any(|c| (c < ' ' && c != '\t') || c == '\u{7f}');
        match rendered_in("<$(params.v)>", Target::Header, &with(&value)) {
            Ok(header) => {
                prop_assert_eq!(header, format!("<{value}>"));
                prop_assert!(!control);
            }
            Err(error) => prop_assert!(control, "{error}"),
        }
    }

    #[test]
    fn parsing_any_text_never_panics(text in texts()) {
        for target in [Target::Text, Target::Url, Target::Header, Target::Body] {
            if let Ok(template) = kubezap_engine::expression::Template::parse(&text, target) {
                let _ = template.render_text(&scope());
            }
        }
        let _ = kubezap_engine::expression::Condition::parse(&text);
        let _ = kubezap_engine::expression::ResultMapping::parse(&text);
    }
}
