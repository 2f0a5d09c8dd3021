//! Connections: HTTP/2 by `h2` itself, since faults reach below what a gRPC server lets through.

mod exchange;
mod inbound;
mod line;
mod server;
mod services;

pub(crate) use line::Cut;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::fault::Sentence;
use crate::hub::Hub;
use line::{Line, Wire};
use server::Order;
use services::Services;

/// HTTP/2 settings of every connection.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    pub(crate) max_concurrent_streams: Option<u32>,
    pub(crate) stream_window: u32,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            max_concurrent_streams: None,
            stream_window: 1 << 20,
        }
    }
}

/// Where a service leaves the sentence of the call it is serving.
#[derive(Debug, Clone, Default)]
pub(crate) struct Docket(Arc<Mutex<Option<Sentence>>>);

impl Docket {
    pub(crate) fn pass(&self, sentence: Sentence) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sentence);
    }

    fn take(&self) -> Option<Sentence> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The number of a connection, for the services.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionNumber(pub(crate) u64);

/// The open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    hub: Arc<Hub>,
    services: Services,
    transport: Transport,
    runtime: Handle,
    open: Mutex<BTreeMap<u64, Open>>,
    stopped: AtomicBool,
}

#[derive(Debug)]
struct Open {
    line: Arc<Line>,
    orders: mpsc::Sender<Order>,
    task: AbortHandle,
}

impl Connections {
    pub(crate) fn new(hub: Arc<Hub>, transport: Transport, runtime: Handle) -> Self {
        let services = Services::new(Arc::clone(&hub), runtime.clone());
        Self {
            hub,
            services,
            transport,
            runtime,
            open: Mutex::default(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Serves a connection in a task of its own.
    pub(crate) fn serve<T>(self: &Arc<Self>, io: T) -> io::Result<()>
    where
        T: AsyncRead + AsyncWrite + Cut + Send + Unpin + 'static,
    {
        if self.stopped.load(Ordering::Acquire) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let number = self.hub.connection_opened();
        let line = Arc::new(Line::default());
        let (orders, inbox) = mpsc::channel(4);
        let connection = server::Connection {
            number: ConnectionNumber(number),
            line: Arc::clone(&line),
            orders: orders.clone(),
            services: self.services.clone(),
        };
        let wire = Wire::new(io, Arc::clone(&line));
        let transport = self.transport.clone();
        let registry = Arc::clone(self);
        // The registry is locked over the spawn: the task must not take itself off the list
        // before it is on it.
        let mut open = self.lock();
        let task = self.runtime.spawn(async move {
            if let Err(error) = server::serve(wire, connection, inbox, &transport).await {
                tracing::debug!(number, %error, "connection ended");
            }
            registry.lock().remove(&number);
            registry.hub.connection_closed();
        });
        open.insert(
            number,
            Open {
                line,
                orders,
                task: task.abort_handle(),
            },
        );
        Ok(())
    }

    pub(crate) fn sever_all(&self) {
        for open in self.lock().values() {
            open.line.sever();
        }
    }

    pub(crate) fn silence_all(&self) {
        for open in self.lock().values() {
            open.line.silence();
        }
    }

    pub(crate) fn retire_all(&self) {
        for open in self.lock().values() {
            if open.orders.try_send(Order::Retire).is_err() {
                tracing::debug!("a connection that was to be retired is already going away");
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        for open in std::mem::take(&mut *self.lock()).into_values() {
            open.line.sever();
            open.task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
