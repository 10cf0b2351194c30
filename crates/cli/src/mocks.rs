//! `mocks.yaml`: hosts that are answered inside the process, so that a Flow can be tried without its targets.
//!
//! A request whose host a mock names never leaves the machine, whatever the egress guard would say of it; any other goes
//! out as usual. Within a host the first route that matches answers. Read by `dev`, `run` and `test`, never applied.

mod answer;
mod file;
mod route;

use std::fmt;
#[cfg(test)]
use std::path::Path;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::BoxFuture;
use kubezap_executor::Interceptor;
use kubezap_step_protocol::{Code, ExecuteRequest, ExecuteResponse};
use url::Url;

use answer::Outcome;
use route::Route;

/// What is shown in the place of a value that was made from a Secret.
const REDACTED: &str = "[REDACTED]";

/// The mocks of a process; cloning shares them. Empty by default.
#[derive(Clone, Default)]
pub(crate) struct Mocks(Arc<Inner>);

#[derive(Default)]
struct Inner {
    hosts: RwLock<Arc<Vec<Host>>>,
    show: Option<Box<Show>>,
}

type Show = dyn Fn(&Exchange) + Send + Sync;

/// A mocked host and its routes, in order.
#[derive(Debug)]
struct Host {
    name: String,
    /// Any port without.
    port: Option<u16>,
    routes: Vec<Route>,
}

/// A file that cannot be used, with the place to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MockError {
    /// The file, as it was given.
    pub(crate) file: String,
    /// Line in it, from 1; `None` when the file cannot be read at all.
    pub(crate) line: Option<u64>,
    /// What is wrong.
    pub(crate) message: String,
}

impl fmt::Display for MockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.message)
    }
}

impl std::error::Error for MockError {}

/// One request that a mock answered, for `--show-requests`. Headers made from Secrets are redacted.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    /// Without user information.
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Where the route stands, `FILE:LINE`; `None` when none matched.
    pub(crate) route: Option<String>,
    pub(crate) answer: Shown,
}

/// What a mock did with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// It answered.
    Response {
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    },
    /// It failed the request, on purpose or for want of a route; the text says how.
    Failure(String),
}

impl Mocks {
    /// Reads one file.
    ///
    /// # Errors
    /// The first thing in it that is wrong, by line.
    #[cfg(test)]
    pub(crate) fn load(path: &Path) -> Result<Self, MockError> {
        Self::load_all(&[path.to_owned()])
    }

    /// Reads several files, none of which is fine, too. A host in two files has the routes of both, in this order.
    ///
    /// # Errors
    /// The first thing in any of them that is wrong, by file and line.
    pub(crate) fn load_all(paths: &[PathBuf]) -> Result<Self, MockError> {
        let mut hosts: Vec<Host> = Vec::new();
        for path in paths {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| MockError {
                file: name.clone(),
                line: None,
                message: format!("cannot be read: {error}"),
            })?;
            for host in file::parse(&name, &text)? {
                let known = hosts
                    .iter_mut()
                    .find(|known| known.name == host.name && known.port == host.port);
                match known {
                    Some(known) => known.routes.extend(host.routes),
                    None => hosts.push(host),
                }
            }
        }
        // The more precise of two entries for one host comes first.
        hosts.sort_by_key(|host| host.port.is_none());
        Ok(Self(Arc::new(Inner {
            hosts: RwLock::new(Arc::new(hosts)),
            show: None,
        })))
    }

    /// Hands every exchange to `show`, before the answer is given. To be called before the mocks are shared.
    pub(crate) fn showing(self, show: impl Fn(&Exchange) + Send + Sync + 'static) -> Self {
        let hosts = self.hosts();
        Self(Arc::new(Inner {
            hosts: RwLock::new(hosts),
            show: Some(Box::new(show)),
        }))
    }

    /// Takes over what `other` holds, for a file that has changed. Sequences begin anew.
    pub(crate) fn replace(&self, other: &Self) {
        let hosts = other.hosts();
        *self.0.hosts.write().unwrap_or_else(PoisonError::into_inner) = hosts;
    }

    /// The hosts that are mocked, as written, in the order they are looked at.
    #[cfg(test)]
    pub(crate) fn names(&self) -> Vec<String> {
        self.hosts()
            .iter()
            .map(|host| match host.port {
                Some(port) => format!("{}:{port}", host.name),
                None => host.name.clone(),
            })
            .collect()
    }

    fn hosts(&self) -> Arc<Vec<Host>> {
        Arc::clone(&self.0.hosts.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn answer(&self, request: &ExecuteRequest) -> Option<ExecuteResponse> {
        // What cannot be read is for the executor to refuse.
        let url = Url::parse(&request.url).ok()?;
        let name = url.host_str()?.trim_end_matches('.');
        let port = url.port_or_known_default();
        let hosts = self.hosts();
        let host = hosts.iter().find(|host| {
            host.name == name && host.port.is_none_or(|wanted| Some(wanted) == port)
        })?;
        let arrived = route::Request::new(request, &url);
        let Some(route) = host.routes.iter().find(|route| route.matches(&arrived)) else {
            let message = route::unmatched(name, &host.routes, &arrived);
            self.show(request, &url, None, Shown::Failure(message.clone()));
            return Some(ExecuteResponse::Failed {
                code: Code::MockUnmatched,
                message,
            });
        };
        let answer = route.next();
        if !answer.delay.is_zero() {
            tokio::time::sleep(answer.delay).await;
        }
        let outcome = answer.outcome(name, request);
        self.show(request, &url, Some(route), outcome.shown());
        match outcome {
            Outcome::Answer(response) => Some(response),
            // Until the step's own time limit.
            Outcome::Silence(_) => std::future::pending().await,
        }
    }

    fn show(&self, request: &ExecuteRequest, url: &Url, route: Option<&Route>, answer: Shown) {
        let Some(show) = &self.0.show else { return };
        let mut url = url.clone();
        // Both fail only for URLs that cannot have user information.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        show(&Exchange {
            method: request.method.clone(),
            url: url.into(),
            headers: request
                .headers
                .iter()
                .map(|header| {
                    let value = if header.sensitive {
                        REDACTED
                    } else {
                        &header.value
                    };
                    (header.name.clone(), value.to_owned())
                })
                .collect(),
            body: request.body.clone().unwrap_or_default(),
            route: route.map(|route| route.place.clone()),
            answer,
        });
    }
}

impl Interceptor for Mocks {
    fn intercept<'a>(
        &'a self,
        request: &'a ExecuteRequest,
    ) -> BoxFuture<'a, Option<ExecuteResponse>> {
        Box::pin(self.answer(request))
    }
}

#[cfg(test)]
mod tests;
