//! Accepting TCP connections, and refusing them.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::connection::Connections;

/// The pause after a connection could not be accepted.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Decides whether new connections are let in.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    closed: Arc<AtomicBool>,
    orders: Option<mpsc::Sender<Order>>,
}

#[derive(Debug)]
struct Order {
    close: bool,
    done: oneshot::Sender<io::Result<()>>,
}

/// The listening half of a gate.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: Option<TcpListener>,
    address: SocketAddr,
    orders: mpsc::Receiver<Order>,
}

impl Gate {
    pub(crate) fn in_memory() -> Self {
        Self {
            closed: Arc::default(),
            orders: None,
        }
    }

    pub(crate) fn over_tcp(listener: TcpListener, address: SocketAddr) -> (Self, Listening) {
        let (sender, orders) = mpsc::channel(1);
        let gate = Self {
            closed: Arc::default(),
            orders: Some(sender),
        };
        (
            gate,
            Listening {
                listener: Some(listener),
                address,
                orders,
            },
        )
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) async fn set(&self, close: bool) -> io::Result<()> {
        self.closed.store(close, Ordering::Release);
        let Some(orders) = &self.orders else {
            return Ok(());
        };
        let (done, answer) = oneshot::channel();
        if orders.send(Order { close, done }).await.is_err() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        answer
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::NotConnected.into()))
    }
}

impl Listening {
    pub(crate) async fn run(mut self, connections: Arc<Connections>) {
        loop {
            tokio::select! {
                biased;
                order = self.orders.recv() => {
                    let Some(order) = order else { return };
                    let result = self.obey(order.close).await;
                    // The caller may have stopped waiting; the order is carried out all the same.
                    drop(order.done.send(result));
                }
                accepted = accept(self.listener.as_ref()) => match accepted {
                    Ok((stream, peer)) => {
                        // Small frames must not wait for each other; a fault may cut the line,
                        // and a zero linger turns that into the reset a crash would cause.
                        drop(stream.set_nodelay(true));
                        drop(stream.set_zero_linger());
                        if let Err(error) = connections.serve(stream) {
                            tracing::debug!(%peer, %error, "connection not served");
                        }
                    }
                    Err(error) => {
                        // Out of file descriptors, most likely: it passes, but not at once.
                        tracing::warn!(%error, "accepting a connection failed");
                        tokio::time::sleep(AFTER_FAILURE).await;
                    }
                },
            }
        }
    }

    async fn obey(&mut self, close: bool) -> io::Result<()> {
        if close {
            if let Some(listener) = self.listener.take() {
                // A program that this process is starting has the socket too until it runs, and closing
                // ours alone would leave it listening. Where a listener cannot be shut down, closing
                // is all there is.
                drop(SockRef::from(&listener).shutdown(Shutdown::Read));
            }
        } else if self.listener.is_none() {
            self.listener = Some(TcpListener::bind(self.address).await?);
        }
        Ok(())
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<(tokio::net::TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}
