//! The TCP side: a port that can go away and come back, and connections that can be broken.

use std::{
    future::Future,
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll},
};

use axum::{
    Router,
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// Pending connections the kernel keeps for us.
const BACKLOG: u32 = 128;

/// The double's port. It stays reserved while nobody listens on it, so that the double can come
/// back to it whatever else runs on the machine.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    /// Bound but never listening: connections are refused when there is no listener beside it.
    _reservation: TcpSocket,
    router: Router,
    breakers: Breakers,
    serving: Option<JoinHandle<()>>,
}

/// Breaks one connection.
#[derive(Debug, Clone)]
pub(crate) struct Breaker(Arc<watch::Sender<bool>>);

type Breakers = Arc<Mutex<Vec<Weak<watch::Sender<bool>>>>>;

impl Server {
    /// Takes a free port of the loopback interface and serves on it.
    pub(crate) fn start(router: Router) -> io::Result<Self> {
        let reservation = socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let mut server = Self {
            address: reservation.local_addr()?,
            _reservation: reservation,
            router,
            breakers: Breakers::default(),
            serving: None,
        };
        server.resume()?;
        Ok(server)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening and resets all connections.
    pub(crate) async fn stop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            // Waits until the listener is closed; the cancellation it reports is our own.
            assert!(
                serving.await.is_err_and(|error| error.is_cancelled()),
                "the server had ended"
            );
        }
        self.break_connections();
    }

    /// Listens again on the same port.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        let listener = socket(self.address)?.listen(BACKLOG)?;
        let gateway = Gateway {
            listener,
            breakers: Arc::clone(&self.breakers),
        };
        let service = self
            .router
            .clone()
            .into_make_service_with_connect_info::<Breaker>();
        self.serving = Some(tokio::spawn(async move {
            axum::serve(gateway, service)
                .await
                .expect("axum serves until it is aborted");
        }));
        Ok(())
    }

    /// Resets all connections, whatever is going on in them.
    pub(crate) fn break_connections(&self) {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        for breaker in breakers.drain(..).filter_map(|breaker| breaker.upgrade()) {
            breaker.send_replace(true);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
        self.break_connections();
    }
}

impl Breaker {
    /// Resets the connection.
    pub(crate) fn trip(&self) {
        self.0.send_replace(true);
    }
}

impl Connected<IncomingStream<'_, Gateway>> for Breaker {
    fn connect_info(stream: IncomingStream<'_, Gateway>) -> Self {
        stream.io().breaker.clone()
    }
}

/// Accepts connections and keeps hold of their breakers.
struct Gateway {
    listener: TcpListener,
    breakers: Breakers,
}

impl Listener for Gateway {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        let (sender, mut broken) = watch::channel(false);
        let breaker = Breaker(Arc::new(sender));
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.retain(|breaker| breaker.strong_count() > 0);
        breakers.push(Arc::downgrade(&breaker.0));
        let tripped = Box::pin(async move {
            // The other outcome is a sender that is gone, and it lives as long as the connection.
            drop(broken.wait_for(|broken| *broken).await);
        });
        (
            Connection {
                stream,
                breaker,
                tripped,
                broken: false,
            },
            peer,
        )
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails once its breaker is tripped, and is reset rather than closed then.
struct Connection {
    stream: TcpStream,
    breaker: Breaker,
    tripped: Pin<Box<dyn Future<Output = ()> + Send>>,
    broken: bool,
}

impl Connection {
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if !self.broken && self.tripped.as_mut().poll(context).is_ready() {
            self.stream.set_zero_linger()?;
            self.broken = true;
        }
        if self.broken {
            Err(io::ErrorKind::ConnectionReset.into())
        } else {
            Ok(())
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}
