//! Streaming pulls, in memory, under a paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, future, stream};
use gcp_wire::proto::pubsub::{
    PubsubMessage, ReceivedMessage, StreamingPullRequest, StreamingPullResponse,
};
use gcp_wire::{
    Code, Connection, ConnectionOptions, Credentials, DecodeFault, Endpoint, Fault, PullSendError,
    PulledResponse,
};
use http::Request;
use http_body::Frame;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use prost::Message as _;
use tokio::sync::{Notify, mpsc};

use crate::server::{
    answer, framed, handler, in_memory, publish, published, refuse, spawn, status, streamed, unary,
};

const SUBSCRIPTION: &str = "projects/demo/subscriptions/orders";

fn pull(endpoint: Endpoint, streams: usize) -> Connection {
    let options = ConnectionOptions::default();
    Connection::pull(endpoint, Credentials::anonymous(), streams, options).unwrap()
}

fn first() -> StreamingPullRequest {
    StreamingPullRequest {
        subscription: SUBSCRIPTION.into(),
        client_id: "c".into(),
        stream_ack_deadline_seconds: 60,
        ..Default::default()
    }
}

fn response(size: usize) -> StreamingPullResponse {
    let message = PubsubMessage {
        data: vec![7; size].into(),
        ..Default::default()
    };
    StreamingPullResponse {
        received_messages: vec![ReceivedMessage {
            message: Some(message),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// The bytes of the payloads of a response that was read.
fn payload(read: Option<PulledResponse>) -> Option<usize> {
    read.map(|response| response.payload_bytes())
}

fn frame(response: &StreamingPullResponse) -> Frame<Bytes> {
    Frame::data(framed(&response.encode_to_vec()))
}

/// What happens within a minute of the paused clock, or not at all.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("it never happened")
}

/// Hands over the messages of a request as they come, and ends with it.
fn requests(request: Request<Incoming>) -> mpsc::Receiver<StreamingPullRequest> {
    let (sender, receiver) = mpsc::channel(100);
    drop(spawn(async move {
        let mut body = request.into_body();
        let mut buffer = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            buffer.extend(frame.into_data().unwrap());
            while buffer.len() >= 5 {
                let len = u32::from_be_bytes([buffer[1], buffer[2], buffer[3], buffer[4]]);
                let end = 5 + usize::try_from(len).unwrap();
                if buffer.len() < end {
                    break;
                }
                let message = StreamingPullRequest::decode(&buffer[5..end]).unwrap();
                buffer.drain(..end);
                sender.send(message).await.unwrap();
            }
        }
    }));
    receiver
}

#[tokio::test(start_paused = true)]
async fn a_stream_opens_without_headers_and_its_first_request_is_there() {
    let (log, mut seen) = mpsc::channel(10);
    let go = Arc::new(Notify::new());
    let gate = Arc::clone(&go);
    let (endpoint, _) = in_memory(handler(move |request| {
        let (log, gate) = (log.clone(), Arc::clone(&gate));
        async move {
            let routing = request.headers()["x-goog-request-params"].clone();
            let timeout = request.headers().contains_key("grpc-timeout");
            let mut requests = requests(request);
            drop(spawn(async move {
                while let Some(request) = requests.recv().await {
                    log.send((routing.clone(), timeout, request)).await.unwrap();
                }
            }));
            // An idle subscription: not even headers.
            gate.notified().await;
            streamed(stream::iter([frame(&response(1))]).chain(stream::pending()))
        }
    }));
    let connection = pull(endpoint, 1);
    let mut stream = connection.open_pull(first()).await.unwrap();
    let (routing, timeout, request) = soon(seen.recv()).await.unwrap();
    assert_eq!(
        routing,
        "subscription=projects%2Fdemo%2Fsubscriptions%2Forders"
    );
    assert!(!timeout, "a stream has no deadline");
    assert_eq!(request, first());
    assert!(!stream.is_open());

    // A minute of silence: nothing comes, and asking and giving up loses nothing.
    let minute = Duration::from_secs(60);
    assert!(tokio::time::timeout(minute, stream.next()).await.is_err());
    assert!(stream.is_drained());
    assert!(stream.received() > 0, "the settings of the connection");
    assert!(stream.connection_window() > gcp_wire::channel::PULL_WINDOW);
    stream.ping().unwrap();
    let (_, _, ping) = soon(seen.recv()).await.unwrap();
    assert_eq!(ping, StreamingPullRequest::default());
    let changed = StreamingPullRequest {
        stream_ack_deadline_seconds: 20,
        ..Default::default()
    };
    stream.send(&changed).unwrap();
    let (_, _, request) = soon(seen.recv()).await.unwrap();
    assert_eq!(request, changed);

    go.notify_one();
    assert_eq!(payload(stream.next().await.unwrap()), Some(1));
    assert!(stream.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_response_in_pieces_survives_that_the_wait_for_it_is_given_up() {
    let whole = framed(&response(100).encode_to_vec());
    let (endpoint, _) = in_memory(handler(move |_| {
        let whole = whole.clone();
        async move {
            let pieces: Vec<_> = whole.chunks(10).map(Bytes::copy_from_slice).collect();
            let pieces = stream::iter(pieces).then(|piece| async {
                tokio::time::sleep(Duration::from_secs(10)).await;
                Frame::data(piece)
            });
            streamed(pieces.chain(stream::pending()))
        }
    }));
    let connection = pull(endpoint, 1);
    let mut stream = connection.open_pull(first()).await.unwrap();
    let mut given_up = 0;
    let received = loop {
        match tokio::time::timeout(Duration::from_secs(7), stream.next()).await {
            Ok(received) => break received.unwrap(),
            Err(_) => given_up += 1,
        }
    };
    assert_eq!(payload(received), Some(100));
    assert!(given_up > 10, "{given_up}");
}

#[tokio::test(start_paused = true)]
async fn unread_streams_hold_up_neither_unary_calls_nor_each_other() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let (endpoint, _) = in_memory(handler(move |request| {
        let number = match request.uri().path() {
            "/google.pubsub.v1.Subscriber/StreamingPull" => {
                Some(count.fetch_add(1, Ordering::SeqCst))
            }
            _ => None,
        };
        async move {
            match number {
                // Unread ones are pushed to without end.
                Some(0..3) => {
                    let data = frame(&response(1 << 20)).into_data().unwrap();
                    streamed(stream::repeat_with(move || Frame::data(data.clone())))
                }
                Some(_) => streamed(
                    stream::iter((0..40).map(|_| frame(&response(100_000))))
                        .chain(stream::pending()),
                ),
                None => published(),
            }
        }
    }));
    let pulls = pull(endpoint.clone(), 4);
    let calls = unary(endpoint);
    let mut unread = Vec::new();
    for _ in 0..3 {
        let mut stream = pulls.open_pull(first()).await.unwrap();
        // Read once, so that the server has begun to push.
        assert!(stream.next().await.unwrap().is_some());
        unread.push(stream);
    }
    // The window of every unread stream fills.
    tokio::time::sleep(Duration::from_secs(60)).await;
    publish(&calls).await.unwrap();
    let mut read = pulls.open_pull(first()).await.unwrap();
    for _ in 0..40 {
        let next = tokio::time::timeout(Duration::from_secs(60), read.next()).await;
        assert_eq!(
            payload(next.expect("held up by an unread stream").unwrap()),
            Some(100_000)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_half_closed_stream_gives_what_is_left_and_ends_cleanly() {
    let (endpoint, _) = in_memory(handler(|request| async {
        let mut requests = requests(request);
        let rest = stream::once(async move {
            while requests.recv().await.is_some() {}
            frame(&response(2))
        });
        let end = stream::once(future::ready(Frame::trailers(status(0, ""))));
        streamed(stream::iter([frame(&response(1))]).chain(rest).chain(end))
    }));
    let connection = pull(endpoint, 1);
    let mut stream = connection.open_pull(first()).await.unwrap();
    assert_eq!(payload(stream.next().await.unwrap()), Some(1));
    stream.half_close();
    assert_eq!(stream.ping(), Err(PullSendError::Closed));
    assert_eq!(payload(stream.next().await.unwrap()), Some(2));
    assert!(stream.next().await.unwrap().is_none());
    assert!(stream.next().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_status_ends_the_stream_with_its_code_also_without_any_response() {
    for (number, fault) in [
        (1, Fault::Transient),
        (5, Fault::Missing),
        (14, Fault::Transient),
    ] {
        let (endpoint, _) = in_memory(handler(move |_| async move { refuse(number, "why") }));
        let connection = pull(endpoint, 1);
        let mut stream = connection.open_pull(first()).await.unwrap();
        let error = stream.next().await.unwrap_err();
        assert_eq!(
            (error.code(), error.fault()),
            (Code::from_number(number), fault)
        );
        assert_eq!(error.method(), "StreamingPull");
        assert!(stream.next().await.unwrap().is_none());
        assert_eq!(stream.ping(), Err(PullSendError::Closed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_cannot_be_decoded_has_its_own_error() {
    let bad_text = {
        let mut bytes = response(0).encode_to_vec();
        // The ack id of a received message: a string that is no UTF-8.
        bytes.extend(b"\x0a\x03\x0a\x01\xff");
        framed(&bytes)
    };
    let too_large = Bytes::from_static(b"\0\x7f\xff\xff\xff");
    for (frame, large) in [(bad_text, false), (too_large, true)] {
        let (endpoint, _) = in_memory(handler(move |_| {
            let frame = frame.clone();
            async move { answer(vec![frame], status(0, "")) }
        }));
        let connection = pull(endpoint, 1);
        let error = connection
            .open_pull(first())
            .await
            .unwrap()
            .next()
            .await
            .unwrap_err();
        match error.decode_fault() {
            Some(DecodeFault::TooLarge { bytes, limit }) if large => {
                assert_eq!((*bytes, *limit), (0x7fff_ffff, 64 << 20));
            }
            Some(DecodeFault::Malformed(what)) if !large => {
                assert!(what.contains("ack_id"), "{what}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(
            (error.method(), error.fault()),
            ("StreamingPull", Fault::Fatal)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_is_reset_and_its_place_is_free_again() {
    let gone = Arc::new(Notify::new());
    let notify = Arc::clone(&gone);
    let (endpoint, connections) = in_memory(handler(move |request| {
        let notify = Arc::clone(&notify);
        async move {
            let mut requests = requests(request);
            drop(spawn(async move {
                while requests.recv().await.is_some() {}
                notify.notify_one();
            }));
            streamed(stream::pending())
        }
    }));
    let connection = pull(endpoint, 1);
    // One stream and its successor fit; a third one waits for a place, and not for ever.
    let one = connection.open_pull(first()).await.unwrap();
    let two = connection.open_pull(first()).await.unwrap();
    let error = connection.open_pull(first()).await.unwrap_err();
    assert!(error.is_timeout() && error.never_sent(), "{error}");
    drop(one);
    soon(gone.notified()).await;
    let three = connection.open_pull(first()).await.unwrap();
    drop((two, three));
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_takes_nothing_is_told_at_once() {
    // The request body is never read, so its window fills and the queue behind it, too.
    let (endpoint, _) = in_memory(handler(|request| async {
        drop(spawn(async move {
            let _held = request;
            future::pending::<()>().await;
        }));
        streamed(stream::pending())
    }));
    let connection = pull(endpoint, 1);
    let stream = connection.open_pull(first()).await.unwrap();
    let large = StreamingPullRequest {
        client_id: "x".repeat(1 << 20),
        ..Default::default()
    };
    let mut sent = 0;
    let error = loop {
        match stream.send(&large) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(sent < 100, "the queue has no bound");
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    assert_eq!(error, PullSendError::Full);
}

#[tokio::test(start_paused = true)]
async fn a_retired_connection_gets_no_new_stream() {
    let (endpoint, connections) = in_memory(handler(|_| async {
        streamed(stream::iter([frame(&response(1))]).chain(stream::pending()))
    }));
    let connection = pull(endpoint, 2);
    let mut old = connection.open_pull(first()).await.unwrap();
    old.retire_connection();
    let mut new = connection.open_pull(first()).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    // Retiring it twice does not touch its successor.
    old.retire_connection();
    let third = connection.open_pull(first()).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    // What is on the old one goes on.
    assert!(old.next().await.unwrap().is_some());
    assert!(new.next().await.unwrap().is_some());
    drop(third);
}

#[tokio::test(start_paused = true)]
async fn streams_are_spread_over_the_channels() {
    let (endpoint, connections) = in_memory(handler(|_| async { streamed(stream::pending()) }));
    let options = ConnectionOptions::default().channels(3);
    let connection = Connection::pull(endpoint, Credentials::anonymous(), 3, options).unwrap();
    let streams = Mutex::new(Vec::new());
    for _ in 0..3 {
        let stream = connection.open_pull(first()).await.unwrap();
        streams.lock().unwrap().push(stream);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}
