//! The API in the process, without a socket.

use std::io;

use http::{Request, Response};

use crate::LocalApi;
use crate::reply::Body;

impl LocalApi {
    /// A client that reaches this API by a function call.
    ///
    /// Must be called within a tokio runtime, which then carries the client's queue.
    pub fn client(&self, default_namespace: &str) -> kube::Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let api = api.clone();
            async move { api.answer(request).await }
        });
        kube::Client::new(service, default_namespace)
    }

    /// Answers one HTTP request.
    ///
    /// # Errors
    /// The request's body cannot be read, or a fault loses the answer: the client sees a broken connection.
    pub async fn answer<B>(&self, request: Request<B>) -> io::Result<Response<Body>>
    where
        B: http_body::Body<Data = bytes::Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.respond(request).await
    }
}
