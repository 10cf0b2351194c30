//! What goes back to a client.

use std::io;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use http::{Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};

use crate::failure::Failure;

/// The body of an answer; of a watch it streams, and fails when the watch is made to break off.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// An answer.
pub(crate) struct Reply {
    pub(crate) code: StatusCode,
    content_type: &'static str,
    content: Content,
    pub(crate) warnings: Vec<String>,
    /// For the audit: what was written.
    pub(crate) written: Option<Written>,
    retry_after: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) name: String,
    pub(crate) version: u64,
}

enum Content {
    Whole(Bytes),
    Stream(BoxStream<'static, io::Result<Bytes>>),
}

impl Reply {
    pub(crate) fn new(code: StatusCode, body: Bytes) -> Self {
        Self {
            code,
            content_type: "application/json",
            content: Content::Whole(body),
            warnings: Vec::new(),
            written: None,
            retry_after: None,
        }
    }

    pub(crate) fn ok(body: Bytes) -> Self {
        Self::new(StatusCode::OK, body)
    }

    pub(crate) fn text(code: StatusCode, text: &'static str) -> Self {
        Self {
            content_type: "text/plain; charset=utf-8",
            ..Self::new(code, text.into())
        }
    }

    pub(crate) fn typed(content_type: &'static str, body: Bytes) -> Self {
        Self {
            content_type,
            ..Self::ok(body)
        }
    }

    pub(crate) fn stream(events: BoxStream<'static, io::Result<Bytes>>) -> Self {
        Self {
            content: Content::Stream(events),
            ..Self::ok(Bytes::new())
        }
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let body = match self.content {
            Content::Whole(bytes) => Full::new(bytes)
                .map_err(|never| match never {})
                .boxed_unsync(),
            Content::Stream(events) => {
                StreamBody::new(events.map_ok(Frame::data).boxed()).boxed_unsync()
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static(self.content_type),
        );
        headers.insert(
            header::CACHE_CONTROL,
            header::HeaderValue::from_static("no-cache, private"),
        );
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        for warning in &self.warnings {
            let text = format!("299 - {}", crate::field::quote(warning));
            if let Ok(value) = text.parse() {
                headers.append(header::WARNING, value);
            }
        }
        response
    }
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Self {
        Self {
            retry_after: failure.retry_after(),
            ..Self::new(failure.code, failure.status().to_string().into())
        }
    }
}
