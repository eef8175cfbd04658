//! The webhook's connections and requests.

use std::{
    convert::Infallible,
    fmt, io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::{JoinSet, spawn_blocking},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, error, info, warn};

use super::{
    AdmissionError, Limits, Review, Settings, body,
    identity::{Files, Identity},
    protocol,
    seats::{Seat, Seats},
};
use crate::chain::chain;

/// The longest head of a request, in bytes.
const LONGEST_HEAD: usize = 64 << 10;

/// How long to wait when the system gives no connection: it has no file descriptor left, say.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a client may take for its TLS handshake, which is a matter of milliseconds: until then it takes the place of
/// others without having shown who it is.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// A webhook that listens, and answers once it is [served](AdmissionServer::serve).
pub struct AdmissionServer {
    listener: TcpListener,
    address: SocketAddr,
    identity: Identity,
    desk: Arc<Desk>,
}

/// What requests share.
struct Desk {
    reviewer: Arc<dyn Review>,
    limits: Limits,
    memory: Arc<Semaphore>,
    reviews: Arc<Semaphore>,
}

impl AdmissionServer {
    /// Reads the certificate and begins to listen.
    ///
    /// # Errors
    ///
    /// When the certificate or the address cannot be used.
    pub async fn bind(
        settings: Settings,
        reviewer: Arc<dyn Review>,
    ) -> Result<Self, AdmissionError> {
        let Settings {
            address,
            certificate,
            key,
            client_authority,
            limits,
        } = settings;
        let files = Files {
            certificate,
            key,
            authority: client_authority,
        };
        let identity = Identity::load(files).await?;
        let listener = async {
            let listener = listen(&address).await?;
            let bound = listener.local_addr()?;
            Ok((listener, bound))
        };
        let (listener, bound) = listener
            .await
            .map_err(|source| AdmissionError::Listen { address, source })?;
        Ok(Self {
            listener,
            address: bound,
            identity,
            desk: Arc::new(Desk {
                reviewer,
                memory: Arc::new(Semaphore::new(limits.memory)),
                reviews: Arc::new(Semaphore::new(limits.reviews)),
                limits,
            }),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until told to stop; requests that have begun are answered then, if that does not take long.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let Self {
            listener,
            address,
            identity,
            desk,
        } = self;
        info!(%address, "the webhook listens");
        let seats = Seats::new(desk.limits.connections);
        let (stopping, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        let mut following = pin!(identity.follow(desk.limits.renewal));
        loop {
            tokio::select! {
                () = &mut stop => break,
                never = &mut following => match never {},
                Some(_ended) = connections.join_next() => {}
                accepted = accept(&listener, &seats) => match accepted {
                    Ok((stream, seat)) => {
                        let connection = Connection {
                            tls: TlsAcceptor::from(identity.config()),
                            desk: Arc::clone(&desk),
                            stopped: stopped.clone(),
                            seat: Arc::new(seat),
                        };
                        connections.spawn(connection.serve(stream));
                    }
                    Err(error) => {
                        warn!(%error, "the webhook cannot accept a connection");
                        sleep(PAUSE).await;
                    }
                },
            }
        }
        drop(listener);
        stopping.send_replace(true);
        let drained = async { while connections.join_next().await.is_some() {} };
        if timeout(desk.limits.drain, drained).await.is_err() {
            warn!("the webhook ends with requests unanswered");
        }
    }
}

impl fmt::Debug for AdmissionServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// `:port` stands for all addresses, of both families if there are both.
async fn listen(address: &str) -> io::Result<TcpListener> {
    let Some(port) = address.strip_prefix(':') else {
        return TcpListener::bind(address).await;
    };
    let port: u16 = port
        .parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        bound => bound,
    }
}

/// The next connection, as soon as there is a place for it.
async fn accept(listener: &TcpListener, seats: &Arc<Seats>) -> io::Result<(TcpStream, Seat)> {
    seats.room().await;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, seats.take(peer.ip().to_canonical())))
}

struct Connection {
    tls: TlsAcceptor,
    desk: Arc<Desk>,
    stopped: watch::Receiver<bool>,
    seat: Arc<Seat>,
}

impl Connection {
    async fn serve(self, stream: TcpStream) {
        let seat = Arc::clone(&self.seat);
        tokio::select! {
            () = self.answer(stream) => {}
            () = seat.lost() => debug!("a connection to the webhook gives way to another one"),
        }
    }

    async fn answer(mut self, stream: TcpStream) {
        let limits = &self.desk.limits;
        // It fails on a connection that has ended.
        let _ended = stream.set_nodelay(true);
        let handshake = self.tls.accept(stream);
        let stream = match timeout(limits.head.min(HANDSHAKE), handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return debug!(%error, "a TLS handshake with the webhook failed"),
            Err(_late) => return debug!("a TLS handshake with the webhook took too long"),
        };
        let desk = Arc::clone(&self.desk);
        let seat = Arc::clone(&self.seat);
        let service = service_fn(move |request| {
            let (desk, seat) = (Arc::clone(&desk), Arc::clone(&seat));
            async move { Ok::<_, Infallible>(desk.answer(request, &seat).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_buf_size(LONGEST_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = told(&mut self.stopped) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            debug!(error = chain(&error), "a connection to the webhook broke");
        }
    }
}

/// Waits for the end of the webhook.
async fn told(stopped: &mut watch::Receiver<bool>) {
    // Who could tell is gone: that is the end as well.
    let _told = stopped.wait_for(|stopped| *stopped).await.is_ok();
}

impl Desk {
    async fn answer(&self, request: Request<Incoming>, seat: &Arc<Seat>) -> Response<Full<Bytes>> {
        let reading = body::read(request.into_body(), &self.memory);
        let question = match timeout(self.limits.body, reading).await {
            Ok(Ok(question)) => question,
            Ok(Err(error)) => return text(error.status(), chain(&error)),
            Err(_late) => {
                let why = "the body did not come in time".into();
                return text(StatusCode::REQUEST_TIMEOUT, why);
            }
        };
        let _busy = seat.busy();
        let Ok(place) = Arc::clone(&self.reviews).acquire_owned().await else {
            return text(
                StatusCode::SERVICE_UNAVAILABLE,
                "no reviews any more".into(),
            );
        };
        let reviewer = Arc::clone(&self.reviewer);
        let review = spawn_blocking(move || {
            // It goes on even if the client does not wait, and keeps its place so long.
            let _place = place;
            protocol::answer(&question.text, &*reviewer)
        });
        match review.await {
            Ok(Ok(answer)) => respond(StatusCode::OK, "application/json", answer.into()),
            Ok(Err(error)) => text(StatusCode::BAD_REQUEST, chain(&error)),
            Err(error) => {
                error!(%error, "a review failed");
                let why = "the review failed; the controller's log says why".into();
                text(StatusCode::INTERNAL_SERVER_ERROR, why)
            }
        }
    }
}

fn text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", text.into())
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
