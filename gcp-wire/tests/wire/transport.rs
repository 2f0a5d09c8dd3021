//! Faults of the transport, told by what the server did and not by the code a library gives them.

use std::sync::atomic::Ordering;

use gcp_wire::proto::pubsub::{PublishResponse, StreamingPullRequest};
use gcp_wire::{Code, Connection, ConnectionOptions, Credentials, Fault, PullStream};
use prost::Message as _;

use crate::frames::{
    CANCEL, ENHANCE_YOUR_CALM, INTERNAL_ERROR, NO_ERROR, REFUSED_STREAM, scripted,
};
use crate::server::{publish, unary};

fn response() -> Vec<u8> {
    PublishResponse {
        message_ids: vec!["1".into()],
    }
    .encode_to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_refused_stream_never_had_an_effect_and_the_connection_stays() {
    let (endpoint, connections) = scripted(|mut peer, _| async move {
        let stream = peer.request().await.unwrap();
        peer.reset(stream, REFUSED_STREAM).await;
        let stream = peer.request().await.unwrap();
        peer.answer(stream, &response()).await;
        peer.linger().await;
    });
    let connection = unary(endpoint);
    let error = publish(&connection).await.unwrap_err();
    assert!(
        error.never_sent() && error.is_transport() && !error.is_ambiguous(),
        "{error}"
    );
    assert_eq!(
        (error.fault(), error.code()),
        (Fault::Transient, Code::Unavailable)
    );
    publish(&connection).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn other_resets_leave_it_open_whether_the_request_took_effect() {
    for reason in [NO_ERROR, INTERNAL_ERROR, CANCEL, ENHANCE_YOUR_CALM] {
        let (endpoint, _) = scripted(move |mut peer, _| async move {
            let stream = peer.request().await.unwrap();
            peer.reset(stream, reason).await;
            peer.linger().await;
        });
        let error = publish(&unary(endpoint)).await.unwrap_err();
        assert!(
            !error.never_sent() && error.is_ambiguous(),
            "{reason}: {error}"
        );
        assert!(error.is_transport(), "{reason}: {error}");
        assert_eq!(
            (error.fault(), error.code()),
            (Fault::Transient, Code::Unavailable)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_the_answer_began_proves_nothing() {
    let (endpoint, _) = scripted(|mut peer, _| async move {
        let stream = peer.request().await.unwrap();
        peer.answer_begins(stream).await;
        peer.reset(stream, REFUSED_STREAM).await;
        peer.linger().await;
    });
    let error = publish(&unary(endpoint)).await.unwrap_err();
    assert!(
        !error.never_sent() && error.is_ambiguous() && error.is_transport(),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_a_leaving_server_did_not_take_goes_to_the_next_connection() {
    let (endpoint, connections) = scripted(|mut peer, number| async move {
        let stream = peer.request().await.unwrap();
        if number == 0 {
            peer.go_away(0, NO_ERROR).await;
        } else {
            peer.answer(stream, &response()).await;
        }
        peer.linger().await;
    });
    let ids = publish(&unary(endpoint)).await.unwrap();
    assert!(ids.iter().eq(["1"]));
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_always_leaves_is_an_error_and_the_request_never_left() {
    let (endpoint, connections) = scripted(|mut peer, _| async move {
        peer.request().await;
        peer.go_away(0, NO_ERROR).await;
        peer.linger().await;
    });
    let error = publish(&unary(endpoint)).await.unwrap_err();
    assert!(error.never_sent() && error.is_transport(), "{error}");
    assert_eq!(error.fault(), Fault::Transient);
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_a_leaving_server_took_is_still_answered() {
    let (endpoint, connections) = scripted(|mut peer, _| async move {
        let stream = peer.request().await.unwrap();
        peer.go_away(stream, NO_ERROR).await;
        peer.answer(stream, &response()).await;
        peer.linger().await;
    });
    let connection = unary(endpoint);
    publish(&connection).await.unwrap();
    publish(&connection).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_after_a_goaway_proves_nothing_for_a_taken_request() {
    let (endpoint, _) = scripted(|mut peer, _| async move {
        let stream = peer.request().await.unwrap();
        peer.go_away(stream, NO_ERROR).await;
    });
    let error = publish(&unary(endpoint)).await.unwrap_err();
    assert!(
        !error.never_sent() && error.is_ambiguous() && error.is_transport(),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_is_transient_and_the_next_call_gets_another() {
    let (endpoint, connections) = scripted(|mut peer, number| async move {
        let stream = peer.request().await.unwrap();
        if number > 0 {
            peer.answer(stream, &response()).await;
            peer.linger().await;
        }
    });
    let connection = unary(endpoint);
    let error = publish(&connection).await.unwrap_err();
    assert!(
        !error.never_sent() && error.is_ambiguous() && error.is_transport(),
        "{error}"
    );
    assert_eq!(error.fault(), Fault::Transient);
    publish(&connection).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_cut_off_is_transient_and_not_a_success() {
    let (endpoint, _) = scripted(|mut peer, _| async move {
        let stream = peer.request().await.unwrap();
        peer.answer_begins(stream).await;
        peer.data(stream, &crate::server::framed(&response())).await;
        // The status is missing.
        peer.reset(stream, NO_ERROR).await;
        peer.linger().await;
    });
    let error = publish(&unary(endpoint)).await.unwrap_err();
    assert_eq!(
        (error.fault(), error.is_ambiguous()),
        (Fault::Transient, true),
        "{error}"
    );
    assert!(error.is_transport());
}

async fn open(connection: &Connection) -> PullStream {
    let subscription = "projects/demo/subscriptions/orders".into();
    let first = StreamingPullRequest {
        subscription,
        ..Default::default()
    };
    connection.open_pull(first).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_reset_pull_stream_is_transient_whatever_the_reason() {
    for (reason, never) in [
        (INTERNAL_ERROR, false),
        (NO_ERROR, false),
        (REFUSED_STREAM, true),
        (CANCEL, false),
    ] {
        let (endpoint, connections) = scripted(move |mut peer, _| async move {
            let stream = peer.request().await.unwrap();
            peer.answer_begins(stream).await;
            peer.data(stream, &crate::server::framed(b"")).await;
            peer.data(stream, &crate::server::framed(b"")).await;
            peer.reset(stream, reason).await;
            let stream = peer.request().await.unwrap();
            peer.reset(stream, reason).await;
            let stream = peer.request().await.unwrap();
            peer.answer_begins(stream).await;
            peer.data(stream, &crate::server::framed(b"")).await;
            peer.linger().await;
        });
        let options = ConnectionOptions::default();
        let connection = Connection::pull(endpoint, Credentials::anonymous(), 1, options).unwrap();
        let mut stream = open(&connection).await;
        // What arrived before the reset may or may not be read; then the stream fails.
        let error = loop {
            match stream.next().await {
                Ok(Some(response)) => {
                    assert!(response.is_empty() && response.properties().is_none())
                }
                Ok(None) => panic!("a reset is no clean end"),
                Err(error) => break error,
            }
        };
        assert_eq!(
            (error.fault(), error.is_transport()),
            (Fault::Transient, true),
            "{reason}"
        );
        assert!(!error.never_sent(), "{reason}: it had begun");
        assert!(
            matches!(stream.next().await, Ok(None)),
            "an error comes once"
        );

        let error = open(&connection).await.next().await.unwrap_err();
        assert_eq!(
            (error.fault(), error.never_sent()),
            (Fault::Transient, never),
            "{reason}"
        );
        let mut stream = open(&connection).await;
        assert!(stream.next().await.unwrap().is_some());
        assert_eq!(connections.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_host_that_does_not_resolve_is_transient_and_nothing_was_sent() {
    // `.invalid` never resolves (RFC 6761).
    let endpoint = gcp_wire::Endpoint::emulator("no-such-host.invalid:8085").unwrap();
    let error = publish(&unary(endpoint)).await.unwrap_err();
    assert_eq!(
        (error.fault(), error.never_sent()),
        (Fault::Transient, true),
        "{error}"
    );
}

#[tokio::test]
async fn a_port_where_nothing_listens_is_transient_and_nothing_was_sent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let endpoint = gcp_wire::Endpoint::emulator(&address.to_string()).unwrap();
    let error = publish(&unary(endpoint)).await.unwrap_err();
    assert_eq!(
        (error.fault(), error.never_sent()),
        (Fault::Transient, true),
        "{error}"
    );
    assert!(error.is_transport());
}
