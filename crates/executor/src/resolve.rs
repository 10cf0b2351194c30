//! Turns a name into addresses. What comes back is not trusted: the guard judges every address before one is dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use hickory_resolver::TokioResolver;
use tokio::sync::OnceCell;

/// Looks names up.
pub trait Resolve: Send + Sync {
    /// Every address of `name`, in order of preference. A trailing dot means that no search domain is tried.
    ///
    /// # Errors
    /// There is none, or the resolver could not tell.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, ResolveError>>;
}

/// A look-up without an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The name does not exist.
    #[error("the name does not exist")]
    NoSuchName,
    /// It exists, and has neither an A nor an AAAA record.
    #[error("the name has no address")]
    NoAddress,
    /// The resolver failed.
    #[error("the resolver failed: {0}")]
    Failed(String),
}

/// The system's hosts file, name servers and search domains, read at the first look-up.
#[derive(Default)]
pub struct SystemResolver {
    resolver: OnceCell<TokioResolver>,
}

impl SystemResolver {
    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let bare = name.trim_end_matches('.');
        if bare == "localhost" || bare.ends_with(".localhost") {
            // RFC 6761: loopback whatever a name server says.
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let resolver = self
            .resolver
            .get_or_try_init(|| async {
                TokioResolver::builder_tokio().and_then(|builder| builder.build())
            })
            .await
            .map_err(|error| ResolveError::Failed(error.to_string()))?;
        match resolver.lookup_ip(name).await {
            Ok(answers) => Ok(answers.iter().collect()),
            Err(error) if error.is_nx_domain() => Err(ResolveError::NoSuchName),
            Err(error) if error.is_no_records_found() => Err(ResolveError::NoAddress),
            Err(error) => Err(ResolveError::Failed(error.to_string())),
        }
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, ResolveError>> {
        self.look_up(name).boxed()
    }
}
