//! A webhook's auth: what is checked, or why it cannot be.

use kubezap_engine::effect::KeyRef;
use kubezap_engine::flow::Problem;

use super::trigger::Auth;
use super::{UNKNOWN_TYPE, problem, unused_blocks};
use crate::reference;
use crate::trigger::{AuthType, HmacAuth, HmacProvider, WebhookAuth};

const AT: &str = "spec.webhook.auth";

/// What GitHub sends; the values that `hmac.header`, `algorithm` and `prefix` may repeat.
const GITHUB: [(&str, &str); 3] = [
    ("header", "X-Hub-Signature-256"),
    ("algorithm", "sha256"),
    ("prefix", "sha256="),
];

/// Gathers what is to be said of an `auth` block.
#[derive(Default)]
pub(super) struct AuthReport {
    pub(super) problems: Vec<Problem>,
    pub(super) not_supported: Vec<Problem>,
    pub(super) unused: Vec<Problem>,
}

/// Lowers an `auth` block; `None` when it cannot be checked, and then the report says why.
pub(super) fn lower(auth: Option<&WebhookAuth>, report: &mut AuthReport) -> Option<Auth> {
    let Some(auth) = auth else {
        return Some(Auth::None);
    };
    unused_blocks(
        &mut report.unused,
        AT,
        auth.type_,
        &[
            ("hmac", auth.hmac.is_some(), AuthType::Hmac),
            ("bearer", auth.bearer.is_some(), AuthType::Bearer),
            ("oidc", auth.oidc.is_some(), AuthType::Oidc),
            ("basic", auth.basic.is_some(), AuthType::Basic),
            ("apiKey", auth.api_key.is_some(), AuthType::ApiKey),
            (
                "ipAllowlist",
                auth.ip_allowlist.is_some(),
                AuthType::IpAllowlist,
            ),
            (
                "headerEquals",
                auth.header_equals.is_some(),
                AuthType::HeaderEquals,
            ),
        ],
    );
    match auth.type_ {
        AuthType::Hmac => match &auth.hmac {
            Some(hmac) => lower_hmac(hmac, report),
            None => missing(report, "hmac"),
        },
        AuthType::Bearer => match &auth.bearer {
            Some(bearer) => Some(Auth::Bearer {
                token: key_ref(&bearer.token_secret_ref),
            }),
            None => missing(report, "bearer"),
        },
        AuthType::Unknown => {
            report
                .not_supported
                .push(problem(format!("{AT}.type"), UNKNOWN_TYPE));
            None
        }
        AuthType::Oidc
        | AuthType::Basic
        | AuthType::ApiKey
        | AuthType::IpAllowlist
        | AuthType::HeaderEquals => {
            report.not_supported.push(problem(
                format!("{AT}.type"),
                format!("{} is not supported yet", auth.type_.as_str()),
            ));
            None
        }
    }
}

fn lower_hmac(hmac: &HmacAuth, report: &mut AuthReport) -> Option<Auth> {
    match hmac.provider {
        HmacProvider::Github => {}
        HmacProvider::Slack => {
            report.not_supported.push(problem(
                format!("{AT}.hmac.provider"),
                "slack is not supported yet",
            ));
            return None;
        }
    }
    let given = [&hmac.header, &hmac.algorithm, &hmac.prefix];
    let mut fits = true;
    for ((field, expected), given) in GITHUB.into_iter().zip(given) {
        if given
            .as_ref()
            .is_some_and(|given| !given.eq_ignore_ascii_case(expected))
        {
            report.not_supported.push(problem(
                format!("{AT}.hmac.{field}"),
                format!("only {expected} is supported for the provider github"),
            ));
            fits = false;
        }
    }
    fits.then(|| Auth::HmacGithub {
        secret: key_ref(&hmac.secret_ref),
    })
}

fn missing(report: &mut AuthReport, block: &str) -> Option<Auth> {
    report.problems.push(problem(
        format!("{AT}.{block}"),
        format!("type {block} needs this block"),
    ));
    None
}

fn key_ref(reference: &reference::KeyRef) -> KeyRef {
    KeyRef {
        name: reference.name.clone(),
        key: reference.key.clone(),
    }
}
