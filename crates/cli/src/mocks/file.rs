//! The format of `mocks.yaml`: read strictly, since a key with a typo would otherwise be a mock that matches too much.

use std::collections::BTreeMap;

use kubezap_api::lower;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;
use url::Host as UrlHost;

use super::answer::{Answer, Content, Fault};
use super::route::{Pattern, Route};
use super::{Host, MockError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    mocks: Vec<HostEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    host: Spanned<String>,
    routes: Vec<Spanned<RouteEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteEntry {
    #[serde(default, rename = "match")]
    matching: MatchEntry,
    #[serde(default)]
    respond: Option<Spanned<AnswerEntry>>,
    #[serde(default)]
    sequence: Option<Vec<Spanned<AnswerEntry>>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MatchEntry {
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    path: Option<Spanned<String>>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    json: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerEntry {
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    json: Option<Value>,
    #[serde(default)]
    delay: Option<String>,
    #[serde(default)]
    echo: bool,
    #[serde(default)]
    fault: Option<Fault>,
}

/// Reads `text`, the content of `file`.
pub(super) fn parse(file: &str, text: &str) -> Result<Vec<Host>, MockError> {
    let entries: File = serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        MockError {
            file: file.to_owned(),
            line: error.location().map(|location| location.line()),
            message: without_place(&error.to_string()),
        }
    })?;
    let mut hosts: Vec<Host> = Vec::new();
    for HostEntry { host, routes } in entries.mocks {
        let at = Place {
            file,
            line: host.referenced.line(),
        };
        let (name, port) = at.check(host_and_port(&host.value))?;
        if hosts
            .iter()
            .any(|known| known.name == name && known.port == port)
        {
            return Err(at.error(format!(
                "{} is mocked twice; put its routes together",
                host.value
            )));
        }
        let routes = routes
            .into_iter()
            .map(|entry| route(file, entry))
            .collect::<Result<_, _>>()?;
        hosts.push(Host { name, port, routes });
    }
    Ok(hosts)
}

fn route(file: &str, entry: Spanned<RouteEntry>) -> Result<Route, MockError> {
    let at = Place {
        file,
        line: entry.referenced.line(),
    };
    let RouteEntry {
        matching:
            MatchEntry {
                method,
                path,
                headers,
                json,
            },
        respond,
        sequence,
    } = entry.value;
    if let Some(path) = &path
        && !path.value.starts_with(['/', '*'])
    {
        let at = Place {
            file,
            line: path.referenced.line(),
        };
        return Err(at.error(format!("path {:?} does not begin with /", path.value)));
    }
    let answers = match (respond, sequence) {
        (Some(answer), None) => vec![answer],
        (None, Some(answers)) if !answers.is_empty() => answers,
        (None, Some(_)) => return Err(at.error("sequence is empty")),
        (None, None) => return Err(at.error("the route has neither respond nor sequence")),
        (Some(_), Some(_)) => return Err(at.error("the route has both respond and sequence")),
    };
    let answers = answers
        .into_iter()
        .map(|entry| answer(file, entry))
        .collect::<Result<_, _>>()?;
    Ok(Route::new(
        format!("{}:{}", at.file, at.line),
        method.map(|method| Pattern::new(&method.to_ascii_uppercase())),
        path.map(|path| Pattern::new(&path.value)),
        headers
            .into_iter()
            .map(|(name, value)| (name, Pattern::new(&value)))
            .collect(),
        json,
        answers,
    ))
}

fn answer(file: &str, entry: Spanned<AnswerEntry>) -> Result<Answer, MockError> {
    let at = Place {
        file,
        line: entry.referenced.line(),
    };
    let AnswerEntry {
        status,
        headers,
        body,
        json,
        delay,
        echo,
        fault,
    } = entry.value;
    let given = [body.is_some(), json.is_some(), echo];
    if given.iter().filter(|given| **given).count() > 1 {
        return Err(at.error("body, json and echo exclude each other"));
    }
    if fault.is_some() && (given.contains(&true) || status.is_some() || !headers.is_empty()) {
        return Err(at.error("a fault has no status, headers or body"));
    }
    let status = status.unwrap_or(200);
    if !(200..=599).contains(&status) {
        return Err(at.error(format!("status {status} is not one from 200 to 599")));
    }
    let delay = match delay {
        None => std::time::Duration::ZERO,
        Some(text) => {
            at.check(lower::duration(&text).map_err(|error| format!("delay {text:?}: {error}")))?
        }
    };
    for (name, value) in &headers {
        let name_fits = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
        if !name_fits || http::HeaderValue::from_bytes(value.as_bytes()).is_err() {
            return Err(at.error(format!("header {name:?} is not one that HTTP allows")));
        }
    }
    let content = match (fault, body, json, echo) {
        (Some(fault), ..) => Content::Fault(fault),
        (None, Some(body), ..) => Content::Text(body),
        (None, None, Some(json), _) => Content::Json(json),
        (None, None, None, true) => Content::Echo,
        (None, None, None, false) => Content::Nothing,
    };
    Ok(Answer {
        status,
        headers: headers
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect(),
        content,
        delay,
    })
}

/// Reads `host[:port]` as the URL parser does, so that both sides compare the same text.
fn host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            let port = port
                .parse::<u16>()
                .map_err(|_| format!("host {text:?} has no port after its colon"))?;
            (host, Some(port))
        }
        _ => (text, None),
    };
    match UrlHost::parse(host.trim_end_matches('.')) {
        Ok(host) if !text.contains(['*', '@', '?']) => Ok((host.to_string(), port)),
        _ => Err(format!(
            "host {text:?} is not a host name; write it without scheme, path or wildcard"
        )),
    }
}

/// The library puts the place into its text, where it would stand twice.
fn without_place(text: &str) -> String {
    let text = text.lines().next().unwrap_or_default();
    let end = text.find(" at line ").unwrap_or(text.len());
    text[..end].trim_end_matches([',', ':', ' ']).to_owned()
}

struct Place<'a> {
    file: &'a str,
    line: u64,
}

impl Place<'_> {
    fn error(&self, message: impl Into<String>) -> MockError {
        MockError {
            file: self.file.to_owned(),
            line: Some(self.line),
            message: message.into(),
        }
    }

    fn check<T>(&self, result: Result<T, String>) -> Result<T, MockError> {
        result.map_err(|message| self.error(message))
    }
}
