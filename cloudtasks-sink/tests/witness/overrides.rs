//! Queues that pause, and queues that send their tasks elsewhere.

use std::net::SocketAddr;

use cloudtasks_sink::{Endpoint, HttpTask, QueueState, SinkError};
use futures::SinkExt;
use gcp_emulator::Method;
use gcp_emulator::cloudtasks::proto::http_request::AuthorizationHeader;
use gcp_emulator::cloudtasks::proto::{
    HttpTarget, OidcToken, PauseQueueRequest, Queue, ResumeQueueRequest, UpdateQueueRequest,
    UriOverride,
};

use crate::exchange::Server;
use crate::servers::{QUEUE, next, target, tasks, witness_at};
use crate::tokens::claims;

/// HTTP, of the scheme of an override.
const HTTP: i32 = 1;
const ALWAYS: i32 = 2;

async fn pause(server: &Server) {
    let request = PauseQueueRequest {
        name: QUEUE.to_owned(),
    };
    let paused: Queue = server
        .ask(Method::PauseQueue, "name", QUEUE, request)
        .await
        .unwrap();
    assert_eq!(paused.state, 2);
}

async fn resume(server: &Server) {
    let request = ResumeQueueRequest {
        name: QUEUE.to_owned(),
    };
    let _running: Queue = server
        .ask(Method::ResumeQueue, "name", QUEUE, request)
        .await
        .unwrap();
}

/// Sends every task of the queue to `address`, with a token of the queue's own.
async fn send_to(server: &Server, address: SocketAddr) {
    let target = HttpTarget {
        uri_override: Some(UriOverride {
            scheme: Some(HTTP),
            host: Some(address.ip().to_string()),
            port: Some(i64::from(address.port())),
            uri_override_enforce_mode: ALWAYS,
            ..UriOverride::default()
        }),
        authorization_header: Some(AuthorizationHeader::OidcToken(OidcToken {
            service_account_email: "queue@demo.iam.gserviceaccount.com".to_owned(),
            audience: "https://queue.example".to_owned(),
        })),
        ..HttpTarget::default()
    };
    let request = UpdateQueueRequest {
        queue: Some(Queue {
            name: QUEUE.to_owned(),
            http_target: Some(target),
            ..Queue::default()
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["http_target".to_owned()],
        }),
    };
    let _updated: Queue = server
        .ask(Method::UpdateQueue, "queue.name", QUEUE, request)
        .await
        .unwrap();
}

fn nowhere() -> HttpTask {
    HttpTask::post("http://127.0.0.1:9/orders").unwrap()
}

async fn setting() -> (SocketAddr, Endpoint, Server) {
    let witness = witness_at().await;
    let endpoint = Endpoint::emulator(&witness.to_string()).unwrap();
    let server = Server::at("witness", endpoint.clone());
    (witness, endpoint, server)
}

#[tokio::test]
async fn a_paused_queue_takes_tasks_is_seen_and_dispatches_them_when_it_is_resumed() {
    let (_, endpoint, server) = setting().await;
    pause(&server).await;
    let (address, mut calls) = target().await;
    let mut sink = tasks(endpoint).build().unwrap();
    sink.send(HttpTask::post(format!("http://{address}/")).unwrap())
        .await
        .unwrap();
    assert_eq!(
        sink.queue_states()[&QUEUE.parse().unwrap()],
        QueueState::Paused
    );
    assert!(calls.try_recv().is_err(), "nothing is dispatched");
    resume(&server).await;
    next(&mut calls).await;
}

#[tokio::test]
async fn an_enforced_override_replaces_the_url_and_the_token_of_tasks_that_are_there_already() {
    let (witness, endpoint, server) = setting().await;
    pause(&server).await;
    let mut sink = tasks(endpoint.clone()).build().unwrap();
    let own = nowhere().oidc(
        "own@demo.iam.gserviceaccount.com",
        Some("https://own.example"),
    );
    sink.send(own).await.unwrap();
    let (address, mut calls) = target().await;
    send_to(&server, address).await;
    resume(&server).await;
    let call = next(&mut calls).await;
    assert_eq!(call.target, "/orders", "the path is not overridden");
    let of = claims(witness, &call).await;
    assert_eq!(of["email"], "queue@demo.iam.gserviceaccount.com");
    assert_eq!(of["aud"], "https://queue.example");
}

#[tokio::test]
async fn a_sink_refuses_a_queue_that_sends_its_tasks_elsewhere_unless_that_is_meant() {
    let (_, endpoint, server) = setting().await;
    let (address, mut calls) = target().await;
    send_to(&server, address).await;
    let mut sink = tasks(endpoint.clone()).build().unwrap();
    let error = sink.send(nowhere()).await.unwrap_err();
    assert!(matches!(error, SinkError::UrlsReplaced { .. }), "{error}");
    let mut sink = tasks(endpoint).allow_url_overrides(true).build().unwrap();
    sink.send(nowhere()).await.unwrap();
    let call = next(&mut calls).await;
    assert_eq!(call.target, "/orders");
    assert!(
        calls.try_recv().is_err(),
        "of the first sink nothing was created"
    );
}
