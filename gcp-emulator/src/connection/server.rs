//! One HTTP/2 connection.

use std::sync::Arc;

use bytes::Bytes;
use h2::Reason;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::connection::exchange::exchange;
use crate::connection::line::{Line, Wire};
use crate::connection::services::Services;
use crate::connection::{ConnectionNumber, Cut, Transport};

/// The connection window beyond the streams' own, so that large publishes overlap.
const CONNECTION_WINDOW: u32 = 32 << 20;

/// Request headers up to this size are read: longer than any client's metadata.
const HEADER_LIST: u32 = 1 << 20;

/// What a connection is told from outside its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// GOAWAY with NO_ERROR; calls under way finish.
    Retire,
    /// GOAWAY with this code; everything ends.
    GoAway(u32),
}

/// What the calls of a connection share.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) number: ConnectionNumber,
    pub(super) line: Arc<Line>,
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) services: Services,
}

/// Serves a connection until it ends.
pub(super) async fn serve<T>(
    wire: Wire<T>,
    connection: Connection,
    mut inbox: mpsc::Receiver<Order>,
    transport: &Transport,
) -> Result<(), h2::Error>
where
    T: AsyncRead + AsyncWrite + Cut + Send + Unpin,
{
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(transport.stream_window)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADER_LIST);
    if let Some(streams) = transport.max_concurrent_streams {
        builder.max_concurrent_streams(streams);
    }
    let mut http = builder.handshake::<_, Bytes>(wire).await?;
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(order) = inbox.recv() => match order {
                Order::Retire => http.graceful_shutdown(),
                Order::GoAway(code) => http.abrupt_shutdown(Reason::from(code)),
            },
            Some(ended) = calls.join_next() => {
                if let Err(error) = ended && error.is_panic() {
                    tracing::error!(%error, "a call panicked; its stream was reset");
                }
            }
            accepted = http.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    let _handle = calls.spawn(exchange(request, respond, connection.clone()));
                }
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
        }
    }
}
