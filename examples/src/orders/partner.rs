//! The partner: a small HTTP server that takes orders, idempotent by event id.

mod book;
mod call;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub(crate) use book::{Book, PartnerTally};
use call::Call;
pub(crate) use call::TaskLabel;

use super::clock;
use super::routes::Routes;

/// What the largest task body may have, and no partner takes more.
const BODY_LIMIT: usize = 1024 * 1024;

/// The partner's address, before it takes calls: the routes table needs it.
#[derive(Debug)]
pub(crate) struct PartnerDoor {
    listener: TcpListener,
    address: SocketAddr,
}

impl PartnerDoor {
    /// Listens on a free port of the loopback interface.
    pub(crate) async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// The origin of the partner's URLs.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The host of the partner's URLs, for an allow-list.
    pub(crate) fn host(&self) -> String {
        self.address.ip().to_string()
    }

    /// Takes calls for the customers of `routes`, until the result is dropped.
    pub(crate) fn serve(self, routes: Arc<Routes>) -> Partner {
        let book = Arc::new(Mutex::new(Book::default()));
        let mut serving = JoinSet::new();
        serving.spawn(accept(self.listener, routes, Arc::clone(&book)));
        Partner {
            book,
            _serving: serving,
        }
    }
}

/// The partner while it takes calls.
#[derive(Debug)]
pub(crate) struct Partner {
    book: Arc<Mutex<Book>>,
    /// Dropping the set ends the server with its connections.
    _serving: JoinSet<()>,
}

impl Partner {
    /// What arrived so far.
    pub(crate) fn tally(&self) -> PartnerTally {
        lock(&self.book).tally()
    }

    /// Asks the book something.
    pub(crate) fn read<T>(&self, ask: impl FnOnce(&Book) -> T) -> T {
        ask(&lock(&self.book))
    }
}

/// Entries are whole after each insertion, so a panic elsewhere leaves the book in order.
fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, routes: Arc<Routes>, book: Arc<Mutex<Book>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // A failed accept belongs to the one client that went away meanwhile.
            Ok((stream, _)) = listener.accept() => {
                connections.spawn(converse(stream, Arc::clone(&routes), Arc::clone(&book)));
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

async fn converse(stream: TcpStream, routes: Arc<Routes>, book: Arc<Mutex<Book>>) {
    let service = service_fn(|request| {
        let (routes, book) = (Arc::clone(&routes), Arc::clone(&book));
        async move { Ok::<_, Infallible>(answer(request, &routes, &book).await) }
    });
    if let Err(error) = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await
    {
        tracing::debug!(%error, "A caller of the partner went away.");
    }
}

async fn answer(
    request: Request<Incoming>,
    routes: &Routes,
    book: &Mutex<Book>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return respond(StatusCode::BAD_REQUEST, error.to_string()),
    };
    match Call::read(&head, &body, routes, clock::wall()) {
        Ok(call) => {
            let text = if lock(book).enter(call) {
                "taken"
            } else {
                "taken before"
            };
            respond(StatusCode::OK, text)
        }
        Err(refusal) => {
            tracing::warn!(path = head.uri.path(), %refusal, "The partner refused a call.");
            lock(book).refuse();
            respond(StatusCode::UNPROCESSABLE_ENTITY, refusal.to_string())
        }
    }
}

fn respond(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests;
