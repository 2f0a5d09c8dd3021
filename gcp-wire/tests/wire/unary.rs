//! Unary calls, in memory, under a paused clock.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::future::join_all;
use futures::stream;
use gcp_wire::proto::pubsub::{
    AcknowledgeRequest, PublishRequest, PublishResponse, PubsubMessage, PullRequest, PullResponse,
    ReceivedMessage, StreamingPullRequest,
};
use gcp_wire::proto::{Any, rpc};
use gcp_wire::{
    AckFailure, Code, Connection, ConnectionOptions, Credentials, DecodeFault, EncodedBody, Fault,
    Sent, method,
};
use http::HeaderMap;
use prost::Message as _;
use tokio::sync::{Notify, Semaphore};

use crate::server::{
    DEADLINE, TOPIC, answer, chain, framed, handler, in_memory, message, ok, production, publish,
    published, read, refuse, spawn, status, streamed, unary,
};

const QUEUE: &str = "projects/example.com:demo/locations/us-central1/queues/q1";

type Requests = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// Answers every call with `PublishResponse`, keeping the requests.
fn recording() -> (gcp_wire::Endpoint, Requests) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let (endpoint, _) = in_memory(handler(move |request| {
        let log = Arc::clone(&log);
        async move {
            let request = read(request).await;
            log.lock().unwrap().push(request);
            published()
        }
    }));
    (endpoint, seen)
}

#[tokio::test(start_paused = true)]
async fn a_call_carries_its_routing_client_and_deadline() {
    let (endpoint, seen) = recording();
    let options = ConnectionOptions::default().client("pubsub-sink", "9.9");
    let connection = Connection::unary(endpoint, Credentials::anonymous(), options).unwrap();
    let answer = publish(&connection).await.unwrap();
    assert!(answer.iter().eq(["1"]));
    let task = gcp_wire::proto::tasks::CreateTaskRequest::default();
    let task = connection
        .call(&method::CREATE_TASK, QUEUE, task, Duration::from_secs(30))
        .await;
    // The answer is a `PublishResponse`, which reads as a task of that name.
    assert_eq!(task.unwrap().name, "1");

    let seen = seen.lock().unwrap();
    let header = |call: usize, name: &str| seen[call].0[name].to_str().unwrap().to_owned();
    let topic = "topic=projects%2Fdemo%2Ftopics%2Forders";
    assert_eq!(header(0, "x-goog-request-params"), topic);
    let queue = "parent=projects%2Fexample.com%3Ademo%2Flocations%2Fus-central1%2Fqueues%2Fq1";
    assert_eq!(header(1, "x-goog-request-params"), queue);
    assert_eq!(header(0, "content-type"), "application/grpc");
    assert_eq!(header(0, "te"), "trailers");
    assert_eq!(header(0, "grpc-timeout"), "20000m");
    assert_eq!(header(1, "grpc-timeout"), "30000m");
    assert!(header(0, "x-goog-api-client").contains("gccl/"));
    assert!(header(0, "user-agent").ends_with("pubsub-sink/9.9"));
}

#[tokio::test(start_paused = true)]
async fn an_emulator_gets_no_credentials_and_none_are_looked_up() {
    struct Trap;
    impl gcp_wire::CredentialsSource for Trap {
        fn headers(
            &self,
        ) -> futures::future::BoxFuture<'_, Result<gcp_wire::AuthHeaders, gcp_wire::CredentialsError>>
        {
            panic!("credentials were looked up for an emulator")
        }
        fn invalidate(&self) {}
    }
    let (endpoint, seen) = recording();
    for credentials in [
        Credentials::custom(Trap),
        Credentials::application_default(),
    ] {
        let options = ConnectionOptions::default();
        let connection = Connection::unary(endpoint.clone(), credentials, options).unwrap();
        publish(&connection).await.unwrap();
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert!(
        seen.iter()
            .all(|(headers, _)| !headers.contains_key("authorization"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_encoded_body_arrives_as_it_is_and_can_be_sent_again() {
    let (endpoint, seen) = recording();
    let connection = unary(endpoint);
    let request = PublishRequest {
        topic: TOPIC.into(),
        messages: vec![PubsubMessage {
            data: vec![7; 300_000].into(),
            ..Default::default()
        }],
    };
    let bytes = Bytes::from(request.encode_to_vec());
    let body = EncodedBody::new([bytes.slice(..10), bytes.slice(10..11), bytes.slice(11..)]);
    assert_eq!(body.len(), bytes.len());
    for _ in 0..2 {
        let sent = connection
            .call_encoded(&method::PUBLISH, TOPIC, body.clone(), DEADLINE)
            .await;
        sent.unwrap();
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0].1, framed(&bytes));
    assert_eq!(seen[1].1, framed(&bytes));
}

#[tokio::test(start_paused = true)]
async fn gzip_compresses_what_is_worth_it() {
    let (endpoint, seen) = recording();
    let options = ConnectionOptions::default().gzip(true);
    let connection = Connection::unary(endpoint, Credentials::anonymous(), options).unwrap();
    let body = Bytes::from(vec![b'a'; 10_000]);
    for body in [body.clone(), body.slice(..100)] {
        let body = EncodedBody::from(body);
        connection
            .call_encoded(&method::PUBLISH, TOPIC, body, DEADLINE)
            .await
            .unwrap();
    }
    let seen = seen.lock().unwrap();
    let (headers, bytes) = &seen[0];
    assert_eq!(headers["grpc-encoding"], "gzip");
    assert_eq!(bytes[0], 1);
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&bytes[5..])
        .read_to_end(&mut plain)
        .unwrap();
    assert_eq!(plain, body);
    let (headers, bytes) = &seen[1];
    assert!(!headers.contains_key("grpc-encoding"));
    assert_eq!(*bytes, framed(&body[..100]));
}

fn with_details(code: i32, details: &str) -> HeaderMap {
    let mut trailers = status(code, "");
    trailers.insert("grpc-status-details-bin", details.parse().unwrap());
    trailers
}

fn ack_details(failures: BTreeMap<String, String>) -> String {
    let info = rpc::ErrorInfo {
        metadata: failures,
        ..Default::default()
    };
    let any = Any {
        type_url: rpc::ErrorInfo::TYPE_URL.into(),
        value: info.encode_to_vec(),
    };
    let status = rpc::Status {
        code: 9,
        message: String::new(),
        details: vec![any],
    };
    BASE64_STANDARD.encode(status.encode_to_vec())
}

async fn acknowledge(details: String) -> gcp_wire::RpcError {
    let (endpoint, _) = in_memory(handler(move |_| {
        let trailers = with_details(9, &details);
        async move { answer(vec![], trailers) }
    }));
    let connection = unary(endpoint);
    let request = AcknowledgeRequest::default();
    connection
        .call(&method::ACKNOWLEDGE, "s", request, DEADLINE)
        .await
        .unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn large_error_details_reach_the_caller() {
    for size in [24_000, 80_000] {
        let reason = "PERMANENT_FAILURE_INVALID_ACK_ID".to_owned();
        let error = acknowledge(ack_details(BTreeMap::from([("a".repeat(size), reason)]))).await;
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert_eq!(
            error.ack_failures().keys().next().map(String::len),
            Some(size)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_failed_ack_ids_are_told_one_by_one() {
    let reasons = [
        "PERMANENT_FAILURE_INVALID_ACK_ID",
        "TRANSIENT_FAILURE_UNORDERED_ACK_ID",
    ];
    let id = |index: usize| format!("{index:04}{}", "x".repeat(180));
    let failures = (0..1_000)
        .map(|index| (id(index), reasons[index % 2].to_owned()))
        .collect();
    let error = acknowledge(ack_details(failures)).await;
    assert_eq!(error.ack_failures().len(), 1_000);
    assert_eq!(
        error.ack_failures()[&id(10)],
        AckFailure::Permanent(reasons[0].into())
    );
    assert_eq!(
        error.ack_failures()[&id(11)],
        AckFailure::Transient(reasons[1].into())
    );
}

#[tokio::test(start_paused = true)]
async fn error_details_that_are_no_base64_are_fatal_and_name_the_method() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let (endpoint, connections) = in_memory(handler(move |_| {
        let first = count.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                answer(vec![], with_details(7, "!!!!"))
            } else {
                published()
            }
        }
    }));
    let connection = unary(endpoint);
    let error = publish(&connection).await.unwrap_err();
    assert_eq!(error.fault(), Fault::Fatal);
    assert_eq!(
        (error.method(), error.code()),
        ("Publish", Code::PermissionDenied)
    );
    assert_eq!(error.decode_fault(), Some(&DecodeFault::Details));
    assert!(error.to_string().starts_with("Publish failed"), "{error}");
    // Neither the caller nor the connection was harmed.
    publish(&connection).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_response_of_three_nine_megabyte_messages_decodes() {
    let (endpoint, _) = in_memory(handler(|_| async {
        let message = |byte| ReceivedMessage {
            message: Some(PubsubMessage {
                data: vec![byte; 9_000_000].into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        ok(&PullResponse {
            received_messages: vec![message(1), message(2), message(3)],
        })
    }));
    let connection = unary(endpoint);
    let response = connection
        .call(&method::PULL, "s", PullRequest::default(), DEADLINE)
        .await;
    let messages = response.unwrap().received_messages;
    assert_eq!(messages.len(), 3);
    for (message, byte) in messages.iter().zip([1, 2, 3]) {
        let data = &message.message.as_ref().unwrap().data;
        assert!(data.len() == 9_000_000 && data.iter().all(|&found| found == byte));
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_over_the_limit_is_an_error_that_names_both_sizes() {
    let (endpoint, _) = in_memory(handler(|_| async {
        answer(vec![Bytes::from_static(b"\0\x04\0\0\x01")], status(0, ""))
    }));
    let error = publish(&unary(endpoint)).await.unwrap_err();
    let fault = DecodeFault::TooLarge {
        bytes: (64 << 20) + 1,
        limit: 64 << 20,
    };
    assert_eq!(error.decode_fault(), Some(&fault));
    assert_eq!(error.fault(), Fault::Fatal);
    let text = error.to_string();
    assert!(
        text.contains("67108865") && text.contains("67108864"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_over_the_limit_is_refused_here() {
    let (endpoint, connections) = in_memory(handler(|_| async { published() }));
    let connection = unary(endpoint);
    let body = EncodedBody::from(Bytes::from(vec![0; (20 << 20) + 1]));
    let error = connection
        .call_encoded(&method::PUBLISH, TOPIC, body, DEADLINE)
        .await
        .unwrap_err();
    assert_eq!(
        (error.fault(), error.sent()),
        (Fault::Rejected, Sent::Never)
    );
    assert!(error.to_string().contains("20971521"), "{error}");
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_response_names_the_field_and_not_its_value() {
    let (endpoint, _) = in_memory(handler(|_| async {
        // Field 1, three bytes that are no UTF-8.
        answer(vec![framed(b"\x0a\x03k\xffy")], status(0, ""))
    }));
    let error = publish(&unary(endpoint)).await.unwrap_err();
    let Some(DecodeFault::Malformed(what)) = error.decode_fault() else {
        panic!("{error}")
    };
    assert!(what.contains("PublishResponse.message_ids"), "{what}");
    assert!(!what.contains("k\u{fffd}y"), "{what}");
    assert_eq!((error.fault(), error.method()), (Fault::Fatal, "Publish"));
    assert!(error.is_ambiguous());
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_or_with_two_messages_is_malformed() {
    for frames in [vec![], vec![framed(b""), framed(b"")]] {
        let (endpoint, _) = in_memory(handler(move |_| {
            let frames = frames.clone();
            async move { answer(frames, status(0, "")) }
        }));
        let error = publish(&unary(endpoint)).await.unwrap_err();
        assert!(
            matches!(error.decode_fault(), Some(DecodeFault::Malformed(_))),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_keeps_its_code_and_message() {
    for (number, fault) in [
        (5, Fault::Missing),
        (1, Fault::Transient),
        (2, Fault::Transient),
    ] {
        let (endpoint, _) = in_memory(handler(move |_| async move { refuse(number, "why") }));
        let error = publish(&unary(endpoint)).await.unwrap_err();
        assert_eq!(
            (error.code(), error.fault()),
            (Code::from_number(number), fault)
        );
        assert_eq!(error.message(), "why");
        assert!(!error.is_transport() && !error.is_timeout() && !error.never_sent());
    }
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_speaks_no_grpc_is_told_by_its_http_status() {
    for (status, code, fault) in [
        (502, Code::Unavailable, Fault::Transient),
        (403, Code::PermissionDenied, Fault::Denied),
        (200, Code::Unknown, Fault::Transient),
    ] {
        let (endpoint, _) = in_memory(handler(move |_| async move {
            let mut response = answer(vec![Bytes::from_static(b"<html>")], HeaderMap::new());
            *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
            response
                .headers_mut()
                .insert("content-type", "text/html".parse().unwrap());
            response
        }));
        let error = publish(&unary(endpoint)).await.unwrap_err();
        assert_eq!((error.code(), error.fault()), (code, fault));
        assert!(error.is_transport() && error.to_string().contains(&status.to_string()));
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_a_hundred_requests_are_on_a_channel() {
    let gate = Arc::new(Semaphore::new(0));
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let full = Arc::new(Notify::new());
    let (endpoint, connections) = {
        let (gate, inside, most) = (Arc::clone(&gate), Arc::clone(&inside), Arc::clone(&most));
        let full = Arc::clone(&full);
        in_memory(handler(move |request| {
            let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
            let (most, full) = (Arc::clone(&most), Arc::clone(&full));
            async move {
                read(request).await;
                let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                if now == 100 {
                    full.notify_one();
                }
                gate.acquire().await.unwrap().forget();
                inside.fetch_sub(1, Ordering::SeqCst);
                published()
            }
        }))
    };
    let connection = unary(endpoint);
    let calls: Vec<_> = (0..250)
        .map(|_| {
            let connection = connection.clone();
            spawn(async move { publish(&connection).await })
        })
        .collect();
    full.notified().await;
    gate.add_permits(250);
    for outcome in join_all(calls).await {
        outcome.unwrap().unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 100);
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn two_channels_share_the_requests() {
    let gate = Arc::new(tokio::sync::Barrier::new(200));
    let (endpoint, connections) = in_memory(handler(move |_| {
        let gate = Arc::clone(&gate);
        async move {
            gate.wait().await;
            published()
        }
    }));
    let options = ConnectionOptions::default().channels(2);
    let connection = Connection::unary(endpoint, Credentials::anonymous(), options).unwrap();
    for outcome in join_all((0..200).map(|_| publish(&connection))).await {
        outcome.unwrap();
    }
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_place_ends_with_the_deadline_and_leaves_no_doubt() {
    let (endpoint, _) = in_memory(handler(|_| std::future::pending()));
    let connection = unary(endpoint);
    let held = join_all((0..100).map(|_| publish(&connection)));
    let request = PublishRequest::default();
    let short = Duration::from_secs(1);
    let late = connection.call(&method::PUBLISH, TOPIC, request, short);
    let (held, late) = tokio::join!(held, late);
    let late = late.unwrap_err();
    assert!(late.is_timeout() && late.never_sent(), "{late}");
    assert!(held.iter().all(|outcome| {
        let error = outcome.as_ref().unwrap_err();
        error.is_timeout() && error.is_ambiguous() && error.code() == Code::DeadlineExceeded
    }));
}

#[tokio::test(start_paused = true)]
async fn a_channel_is_replaced_after_two_silent_time_outs_in_a_row() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let (endpoint, connections) = in_memory(handler(move |_| {
        let call = count.fetch_add(1, Ordering::SeqCst);
        async move {
            if call < 2 {
                std::future::pending().await
            } else {
                published()
            }
        }
    }));
    let connection = unary(endpoint);
    assert!(publish(&connection).await.unwrap_err().is_timeout());
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    assert!(publish(&connection).await.unwrap_err().is_timeout());
    publish(&connection).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_channel_on_which_bytes_arrive_between_time_outs_is_kept() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let (endpoint, connections) = in_memory(handler(move |_| {
        let call = count.fetch_add(1, Ordering::SeqCst);
        async move {
            if call.is_multiple_of(2) {
                std::future::pending().await
            } else {
                published()
            }
        }
    }));
    let connection = unary(endpoint);
    for _ in 0..3 {
        assert!(publish(&connection).await.unwrap_err().is_timeout());
        publish(&connection).await.unwrap();
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_time_out_during_which_bytes_arrived_is_no_silent_one() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let (endpoint, connections) = in_memory(handler(move |_| {
        let call = count.fetch_add(1, Ordering::SeqCst);
        async move {
            match call {
                // The answer begins and never ends.
                0 => streamed(stream::pending()),
                1 | 2 => std::future::pending().await,
                _ => published(),
            }
        }
    }));
    let connection = unary(endpoint);
    for expected in [1, 1, 1, 2] {
        publish(&connection)
            .await
            .err()
            .inspect(|error| assert!(error.is_timeout()));
        assert_eq!(connections.load(Ordering::SeqCst), expected);
    }
    assert_eq!(calls.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_made_once_for_all_who_wait_and_outlives_an_impatient_one() {
    let (endpoint, connections) = in_memory(handler(|request| async move {
        let request: PublishRequest = message(request).await;
        ok(&PublishResponse {
            message_ids: vec![request.topic],
        })
    }));
    let connection = unary(endpoint);
    let impatient = connection
        .call(
            &method::PUBLISH,
            "",
            PublishRequest::default(),
            Duration::ZERO,
        )
        .await;
    assert!(impatient.unwrap_err().is_timeout());
    for outcome in join_all((0..20).map(|_| publish(&connection))).await {
        assert!(outcome.unwrap().iter().eq([TOPIC]));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_fails_is_transient_and_nothing_was_sent() {
    let endpoint = gcp_wire::Endpoint::in_memory(|| {
        Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused))
    });
    let error = publish(&unary(endpoint)).await.unwrap_err();
    assert!(error.is_transport() && error.never_sent() && !error.is_ambiguous());
    assert_eq!(
        (error.fault(), error.code()),
        (Fault::Transient, Code::Unavailable)
    );
    let text = chain(&error);
    assert!(
        text.contains("cannot be reached; the request never left"),
        "{text}"
    );
    assert!(text.ends_with("connection refused"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn pulls_and_unary_calls_are_kept_apart() {
    let (endpoint, connections) = in_memory(handler(|_| async { published() }));
    let options = ConnectionOptions::default;
    let pull = Connection::pull(endpoint.clone(), Credentials::anonymous(), 1, options()).unwrap();
    let error = publish(&pull).await.unwrap_err();
    assert_eq!((error.fault(), error.sent()), (Fault::Fatal, Sent::Never));
    let error = unary(endpoint)
        .open_pull(StreamingPullRequest::default())
        .await
        .unwrap_err();
    assert_eq!((error.fault(), error.sent()), (Fault::Fatal, Sent::Never));
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[cfg(not(any(feature = "tls-ring", feature = "tls-aws-lc")))]
#[test]
fn without_tls_an_https_endpoint_is_an_error_that_names_the_features() {
    let options = ConnectionOptions::default();
    let error = Connection::unary(production(), Credentials::anonymous(), options).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("tls-ring or tls-aws-lc") && text.contains("pubsub"),
        "{text}"
    );
}

#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
#[test]
fn making_a_connection_needs_no_runtime_and_checks_its_settings() {
    let options = ConnectionOptions::default;
    let credentials = Credentials::application_default;
    let connection = Connection::unary(production(), credentials(), options()).unwrap();
    assert!(format!("{connection:?}").contains("pubsub.googleapis.com"));
    let client = options().client("line\nbreak", "1");
    assert!(Connection::unary(production(), credentials(), client).is_err());
    for (streams, channels, fits) in [(0, 1, false), (50, 1, true), (51, 1, false), (51, 2, true)] {
        let options = options().channels(channels);
        let made = Connection::pull(production(), credentials(), streams, options);
        assert_eq!(made.is_ok(), fits, "{streams} on {channels}");
    }
}
