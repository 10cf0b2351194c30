//! Opens connections: checks the target, resolves, checks every answer, dials what was checked, then TLS.
//!
//! This is a connector and not a resolver hook because an HTTP client asks no resolver about a literal address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::{Host, Url};

use crate::egress::{AllowList, Denied, Guard, Target};
use crate::resolve::{Resolve, ResolveError};
use crate::tls::ClientTls;

/// How long one address may keep the next waiting (RFC 8305 recommends 250 ms).
const HEAD_START: Duration = Duration::from_millis(250);

/// A name with more addresses than this is dialled at the first ones only.
const MAX_ADDRESSES: usize = 16;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// Not a target that a connection can be opened to.
    #[error("not a target: {0}")]
    Target(String),
    /// The guard refused the target or one of its addresses.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The name has no address.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// No address took the connection.
    #[error("no connection: {0}")]
    Connect(io::Error),
    /// The handshake failed.
    #[error("handshake failed: {0}")]
    Tls(io::Error),
}

/// Opens connections for one client, which is for one allow-list and one TLS identity.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) guard: Arc<Guard>,
    pub(crate) allow: Arc<AllowList>,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) tls: Arc<ClientTls>,
}

impl Connector {
    async fn connect(self, uri: Uri) -> Result<Stream, DialError> {
        let url =
            Url::parse(&uri.to_string()).map_err(|error| DialError::Target(error.to_string()))?;
        let target = Target::of(&url)?;
        self.guard.check_target(&target, &self.allow)?;
        let addresses = self.addresses(&target).await?;
        let stream = dial(&addresses).await.map_err(DialError::Connect)?;
        // Requests are small and waited for; a socket that refuses the option still works.
        let _ = stream.set_nodelay(true);
        if url.scheme() != "https" {
            return Ok(Stream::Plain(TokioIo::new(stream)));
        }
        let name = match &target.host {
            Host::Domain(name) => ServerName::try_from(name.clone()).map_err(|_| {
                DialError::Target("not a name that a certificate can hold".to_owned())
            })?,
            Host::Ipv4(address) => ServerName::from(IpAddr::V4(*address)),
            Host::Ipv6(address) => ServerName::from(IpAddr::V6(*address)),
        };
        let stream = TlsConnector::from(self.tls.config())
            .connect(name, stream)
            .await
            .map_err(DialError::Tls)?;
        Ok(Stream::Tls(Box::new(TokioIo::new(stream))))
    }

    async fn addresses(&self, target: &Target) -> Result<Vec<SocketAddr>, DialError> {
        let answers = match &target.host {
            Host::Ipv4(address) => vec![IpAddr::V4(*address)],
            Host::Ipv6(address) => vec![IpAddr::V6(*address)],
            Host::Domain(name) => {
                // A public name is complete. Search domains are for names that the operator admitted, which may be the
                // cluster's own; they would otherwise make every call ask the cluster's DNS for nonsense first.
                let name = if self.allow.admits_name(target) {
                    name.clone()
                } else {
                    format!("{name}.")
                };
                self.resolver.resolve(&name).await?
            }
        };
        if answers.is_empty() {
            return Err(ResolveError::NoAddress.into());
        }
        Ok(self.guard.check_answers(target, &answers, &self.allow)?)
    }
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = DialError;
    type Future = BoxFuture<'static, Result<Stream, DialError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// Tries each address, giving each a head start over the next; the first that answers wins. The error is the last one's.
async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut rest = alternate(addresses).into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        let next = rest.next();
        let last = next.is_none();
        attempts.extend(next.map(TcpStream::connect));
        if attempts.is_empty() {
            return Err(error);
        }
        let head_start = async {
            if last {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(HEAD_START).await;
        };
        tokio::select! {
            Some(attempt) = attempts.next() => match attempt {
                Ok(stream) => return Ok(stream),
                Err(failed) => error = failed,
            },
            () = head_start => {}
        }
    }
}

/// Alternates families, starting with the first one's, so that one that does not work here costs a single head start.
fn alternate(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v4 = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (Vec<SocketAddr>, Vec<SocketAddr>) = addresses
        .iter()
        .partition(|address| address.is_ipv4() == first_is_v4);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut ordered = Vec::new();
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            ordered.truncate(MAX_ADDRESSES);
            return ordered;
        }
        ordered.extend(pair.into_iter().flatten());
    }
}

/// A connection.
pub(crate) enum Stream {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Self::Tls(stream) if stream.inner().get_ref().1.alpn_protocol() == Some(b"h2") => {
                Connected::new().negotiated_h2()
            }
            _ => Connected::new(),
        }
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
        }
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write_vectored(cx, bufs),
        }
    }
}
