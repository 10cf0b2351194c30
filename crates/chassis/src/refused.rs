//! Flags of kubezap-operator that are refused by name, with the reason, instead of as unknown.

/// Looks for a flag that is refused on purpose, and says why.
///
/// A main asks before it parses its arguments, prints the line and exits with 2.
pub fn flag(arguments: impl IntoIterator<Item = impl AsRef<str>>) -> Option<String> {
    arguments.into_iter().find_map(|argument| {
        let argument = argument.as_ref();
        let flag = argument
            .strip_prefix("--")
            .or_else(|| argument.strip_prefix('-'))?;
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        let reason = match (name, value) {
            ("enable-ui", _) => "there is no web interface; use `kubezap watch` and `kubezap history`",
            ("allow-tls-skip-verify", _) => {
                "a certificate that is not checked protects nothing; give the target's CA instead"
            }
            ("executor-mtls", Some("false")) => {
                "the channel to the executor carries credentials and is always mutual TLS; remove the flag"
            }
            (name, _) if name.starts_with("ui-") => {
                "there is no web interface; use `kubezap watch` and `kubezap history`"
            }
            _ => return None,
        };
        Some(format!("--{name} is refused: {reason}"))
    })
}

#[cfg(test)]
mod tests {
    use super::flag;

    #[test]
    fn retired_flags_are_refused_by_name_with_the_reason() {
        for argument in [
            "--enable-ui",
            "--enable-ui=true",
            "--ui-port=8443",
            "-ui-bind-address=:1",
            "--executor-mtls=false",
            "--allow-tls-skip-verify",
        ] {
            let said = flag(["program", argument]).unwrap();
            let name = argument.trim_start_matches('-').split('=').next().unwrap();
            assert!(
                said.starts_with(&format!("--{name} is refused: ")),
                "{said}"
            );
        }
    }

    #[test]
    fn other_flags_pass() {
        assert_eq!(
            flag([
                "--executor-mtls=true",
                "--executor-mtls",
                "--leader-elect",
                "ui-x",
                "-n"
            ]),
            None
        );
    }
}
