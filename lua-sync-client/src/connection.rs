//! One HTTP request on a connection of its own.

use std::{convert::Infallible, pin::pin};

use futures::future::{Either, select};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{Uri, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};

use crate::{
    client::{Endpoint, Settings},
    error::{Call, Error},
    revision::Revision,
};

/// What is asked or told.
pub(crate) struct Request<'a> {
    pub(crate) call: Call,
    pub(crate) query: Option<&'a str>,
    pub(crate) revision: Option<Revision>,
    pub(crate) body: Bytes,
}

/// A whole answer, whatever its status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

/// Connects, sends the request and reads the answer within the time and the size that `settings` allow.
pub(crate) async fn exchange(
    endpoint: &Endpoint,
    settings: &Settings,
    request: &Request<'_>,
) -> Result<Answer, Error> {
    let conversation = async {
        let connect = |source| Error::Connect {
            endpoint: endpoint.to_string(),
            source,
        };
        match endpoint {
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect(address).await.map_err(connect)?;
                // Headers and body leave in separate writes; the second must not wait for an acknowledgement.
                stream.set_nodelay(true).map_err(connect)?;
                converse(stream, &address.to_string(), settings.max_answer, request).await
            }
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(connect)?;
                converse(stream, "localhost", settings.max_answer, request).await
            }
        }
    };
    timeout(settings.timeout, conversation)
        .await
        .unwrap_or_else(|_| {
            Err(Error::Timeout {
                call: request.call,
                after: settings.timeout,
            })
        })
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    host: &str,
    max_answer: usize,
    request: &Request<'_>,
) -> Result<Answer, Error> {
    let call = request.call;
    let message = message(request, host)?;
    let interrupted = |source| Error::Interrupted { call, source };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(interrupted)?;
    let exchange = pin!(async {
        let response = sender.send_request(message).await.map_err(interrupted)?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), max_answer)
            .collect()
            .await;
        match body {
            Ok(body) => Ok(Answer {
                status,
                body: body.to_bytes(),
            }),
            Err(error) if error.is::<LengthLimitError>() => Err(Error::TooLarge {
                call,
                limit: max_answer,
            }),
            Err(error) => match error.downcast::<hyper::Error>() {
                Ok(source) => Err(interrupted(*source)),
                Err(source) => Err(Error::Request { call, source }),
            },
        }
    });
    let driver = pin!(async {
        // How the connection ends is told to whoever waits for the answer, who may not have read all of it yet.
        connection.await.ok();
        std::future::pending::<Infallible>().await
    });
    match select(exchange, driver).await {
        Either::Left((answer, _)) => answer,
        Either::Right((never, _)) => match never {},
    }
}

fn message(request: &Request<'_>, host: &str) -> Result<hyper::Request<Full<Bytes>>, Error> {
    let Call { method, path } = request.call;
    let failed = |source: hyper::http::Error| Error::Request {
        call: request.call,
        source: source.into(),
    };
    let target = match request.query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let target = Uri::try_from(target).map_err(|error| failed(error.into()))?;
    let mut builder = hyper::Request::builder()
        .method(method)
        .uri(target)
        .header(header::HOST, host)
        .header(header::CONNECTION, "close");
    if method != "GET" {
        builder = builder.header(header::CONTENT_TYPE, "application/json");
    }
    if let Some(revision) = request.revision {
        builder = builder.header("X-Revision", revision.number());
    }
    builder
        .body(Full::new(request.body.clone()))
        .map_err(failed)
}
