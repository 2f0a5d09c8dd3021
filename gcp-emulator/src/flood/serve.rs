//! The HTTP/2 side of a flood server.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answers::Answers;
use super::counts::{Counters, add};
use super::pull::Block;
use super::rest::{is_http2, rest};
use super::room::{Room, Stream, Turn};
use super::scan::Scanner;
use super::{Flood, FloodCounts};

/// Windows that never stand in the way of a client that sends.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// How much of a pull stream may wait in the send queue.
const SEND_BUFFER: usize = 4 << 20;

/// Field numbers of the served requests.
const PULL_LIMIT: usize = 7;
const ACK_IDS: usize = 2;
const DEADLINE: usize = 3;
const DEADLINE_IDS: usize = 4;
const PUBLISHED: usize = 2;
const BATCHED: usize = 2;

#[derive(Debug)]
struct Shared {
    flood: Flood,
    block: Block,
    answers: Answers,
    room: Room,
    counters: Counters,
    next: AtomicU64,
    began: Instant,
}

/// Serves every connection that comes to `listener`, for ever, and tells `watch` once a second
/// what was done so far.
///
/// Everything runs on the caller's runtime; for a measurement that is one of a single thread in a
/// process of its own.
///
/// # Errors
///
/// When no connection can be accepted any more.
///
/// # Cancel safety
///
/// Dropping the future ends the server and all its connections.
pub async fn serve(
    listener: TcpListener,
    flood: Flood,
    mut watch: impl FnMut(FloodCounts) + Send,
) -> io::Result<()> {
    let shared = Arc::new(Shared {
        block: Block::new(&flood),
        answers: Answers::new(),
        room: Room::new(flood.rate),
        counters: Counters::default(),
        next: AtomicU64::new(1),
        began: now(),
        flood,
    });
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                let _handle = connections.spawn(connection(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
            _ = second.tick() => watch(shared.counters.read()),
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let mut first = [0; 2];
    let Ok(read) = stream.peek(&mut first).await else {
        return;
    };
    if !is_http2(&first[..read]) {
        let shared = &*shared;
        let created = || async {
            delay(shared).await;
            add(&shared.counters.requests, 1);
            add(&shared.counters.created, 1);
        };
        // A client that goes away in the middle is not this server's business.
        drop(rest(stream, created).await);
        return;
    }
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER);
    if let Some(streams) = shared.flood.streams_per_connection {
        builder.max_concurrent_streams(streams);
    }
    let Ok(mut http) = builder.handshake::<_, Bytes>(stream).await else {
        return;
    };
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            // A client that goes away in the middle is not this server's business.
            Some(_) = calls.join_next() => {}
            accepted = http.accept() => {
                let Some(Ok((request, respond))) = accepted else {
                    return;
                };
                let shared = Arc::clone(&shared);
                let _handle = calls.spawn(async move { call(request, respond, &shared).await });
            }
        }
    }
}

async fn call(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    shared: &Shared,
) -> Result<(), h2::Error> {
    let (parts, body) = request.into_parts();
    let method = parts.uri.path().rsplit('/').next().unwrap_or_default();
    let counters = &shared.counters;
    add(&counters.requests, 1);
    if method == "StreamingPull" {
        return pull(body, respond, shared).await;
    }
    let scanned = scan(body).await?;
    let answer = match method {
        "Acknowledge" => {
            let ids = scanned.count(ACK_IDS);
            add(&counters.acknowledged, ids);
            shared.room.give(ids);
            shared.answers.empty()
        }
        "ModifyAckDeadline" => {
            let ids = scanned.count(DEADLINE_IDS);
            if scanned.number(DEADLINE) == 0 {
                add(&counters.released, ids);
                shared.room.give(ids);
            } else {
                add(&counters.extended, ids);
            }
            shared.answers.empty()
        }
        "Publish" => {
            let messages = scanned.count(PUBLISHED);
            delay(shared).await;
            add(&counters.published, messages);
            shared.answers.published(messages)
        }
        "CreateTask" => {
            delay(shared).await;
            add(&counters.created, 1);
            shared.answers.task()
        }
        "BatchCreateTasks" => {
            let tasks = scanned.count(BATCHED);
            delay(shared).await;
            add(&counters.created, tasks);
            shared.answers.batch(tasks)
        }
        _ => {
            let mut response = head();
            response
                .headers_mut()
                .insert("grpc-status", HeaderValue::from_static("12"));
            respond.send_response(response, true)?;
            return Ok(());
        }
    };
    let mut stream = respond.send_response(head(), false)?;
    stream.send_data(answer, false)?;
    stream.send_trailers(trailers())
}

async fn delay(shared: &Shared) {
    if !shared.flood.delay.is_zero() {
        tokio::time::sleep(shared.flood.delay).await;
    }
}

async fn scan(mut body: RecvStream) -> Result<Scanner, h2::Error> {
    let mut scanner = Scanner::default();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        scanner.feed(&piece);
    }
    Ok(scanner)
}

async fn pull(
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
    shared: &Shared,
) -> Result<(), h2::Error> {
    let mut first = Scanner::default();
    if let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        first.feed(&piece);
    }
    let stream = shared.room.open(first.number(PULL_LIMIT));
    let mut out = respond.send_response(head(), false)?;
    // Pings come in all along; the end of them, or a reset, is the end of the stream.
    let ended = async {
        while let Some(Ok(piece)) = body.data().await {
            if body.flow_control().release_capacity(piece.len()).is_err() {
                break;
            }
        }
    };
    let sent = tokio::select! {
        () = ended => Ok(()),
        sent = send(&mut out, &stream, shared) => sent,
    };
    drop(stream);
    sent?;
    out.send_trailers(trailers())
}

async fn send(
    out: &mut SendStream<Bytes>,
    stream: &Stream<'_>,
    shared: &Shared,
) -> Result<(), h2::Error> {
    let messages = shared.block.messages();
    loop {
        let given = shared.room.given();
        tokio::pin!(given);
        given.as_mut().enable();
        match stream.take(messages, now() - shared.began) {
            Turn::Send => {}
            Turn::At(due) => {
                tokio::time::sleep_until(shared.began + due).await;
                continue;
            }
            Turn::Later => {
                given.await;
                continue;
            }
        }
        let first = shared.next.fetch_add(messages, Ordering::Relaxed);
        let bytes = shared.block.numbered(first);
        capacity(out, bytes.len().min(SEND_BUFFER)).await?;
        out.send_data(bytes, false)?;
        add(&shared.counters.delivered, messages);
    }
}

/// Waits until the client's window and the send queue take so many bytes, or as many as they ever do.
async fn capacity(out: &mut SendStream<Bytes>, bytes: usize) -> Result<(), h2::Error> {
    out.reserve_capacity(bytes);
    while out.capacity() < bytes.min(1 << 20) {
        match poll_fn(|cx| out.poll_capacity(cx)).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error),
            None => return Err(h2::Reason::CANCEL.into()),
        }
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server made for load is a driver of its own"
)]
fn now() -> Instant {
    Instant::now()
}

fn head() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("application/grpc"),
    );
    response
}

fn trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    trailers
}
