//! Regular expressions as CEL means them.

/// Rewrites RE2's syntax, which CEL names, where the regex crate reads it otherwise: `\\d`, `\\w`, `\\s` and `\\b` mean ASCII.
pub(super) fn to_rust(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match (chars.next(), in_class) {
                (Some('d'), false) => out.push_str("[0-9]"),
                (Some('w'), false) => out.push_str("[0-9A-Za-z_]"),
                (Some('s'), false) => out.push_str("[\\t\\n\\x0c\\r\\x20]"),
                (Some('d'), true) => out.push_str("0-9"),
                (Some('w'), true) => out.push_str("0-9A-Za-z_"),
                (Some('s'), true) => out.push_str("\\t\\n\\x0c\\r\\x20"),
                (Some('D'), _) => out.push_str("[^0-9]"),
                (Some('W'), _) => out.push_str("[^0-9A-Za-z_]"),
                (Some('S'), _) => out.push_str("[^\\t\\n\\x0c\\r\\x20]"),
                (Some('b'), false) => out.push_str("(?-u:\\b)"),
                (Some(other), _) => {
                    out.push('\\');
                    out.push(other);
                }
                (None, _) => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                // A bracket right after the opening one is a member, not the end.
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    out.push(']');
                }
            }
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str("\\["),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        regex::Regex::new(&to_rust(pattern)).unwrap().is_match(text)
    }

    #[test]
    fn classes_mean_ascii_as_in_re2() {
        for (pattern, text, expected) in [
            (r"^\d+$", "123", true),
            (r"^\d+$", "\u{663}", false),
            (r"^\w+$", "a_1", true),
            (r"^\w+$", "\u{e4}", false),
            (r"^[\w.-]+$", "a.b-c_1", true),
            (r"^[^\s]+$", "a b", false),
            (r"^[\D]+$", "abc", true),
            (r"^\W$", "\u{e4}", true),
            (r"^[]a]+$", "]a", true),
            (r"^[[]$", "[", true),
            (r"^[[:alpha:]\d]+$", "a1", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^\\d$", r"\d", true),
            (r"^\.\[\]$", ".[]", true),
            (r"^\pL$", "\u{e4}", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
