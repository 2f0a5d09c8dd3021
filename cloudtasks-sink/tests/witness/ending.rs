//! Names of tasks that were dispatched.

use std::num::NonZeroU32;

use cloudtasks_sink::{Batch, Code, Endpoint, HttpTask, TaskRetries};
use futures::SinkExt;
use hyper::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::exchange::{Server, Way, http};
use crate::servers::{LIMIT, QUEUE, answering, next, tasks, witness_at};

/// Waits until the witness's queue holds no task.
async fn idle(witness: std::net::SocketAddr) {
    let mut stream = TcpStream::connect(witness).await.unwrap();
    let path = format!("/emulator/{QUEUE}:waitIdle");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {witness}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = tokio::time::timeout(LIMIT, stream.read_to_string(&mut answer)).await;
    read.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

#[tokio::test]
async fn a_task_that_was_carried_out_or_given_up_keeps_its_name() {
    for (status, size) in [
        (StatusCode::OK, None),
        (StatusCode::INTERNAL_SERVER_ERROR, None),
        (StatusCode::OK, Some(Batch::up_to(100))),
        (StatusCode::INTERNAL_SERVER_ERROR, Some(Batch::up_to(100))),
    ] {
        let (address, mut calls) = answering(status).await;
        let witness = witness_at().await;
        let endpoint = Endpoint::emulator(&witness.to_string()).unwrap();
        let mut sink = tasks(endpoint.clone()).task_id(|_: &HttpTask| "order-1");
        if let Some(size) = size {
            sink = sink.batching(size);
        }
        let mut sink = sink.build().unwrap();
        let task = HttpTask::post(format!("http://{address}/"))
            .unwrap()
            .retries(TaskRetries::default().attempts(NonZeroU32::MIN));
        sink.send(task.clone()).await.unwrap();
        next(&mut calls).await;
        idle(witness).await;
        sink.send(task).await.unwrap();
        let stats = sink.stats();
        assert_eq!(
            (stats.created, stats.duplicates),
            (1, 1),
            "{status} {size:?}"
        );

        let server = Server::at("witness", endpoint);
        let id = "0bafe22156d2698c143b86040446d366ead863ba600d5c924f3d15c786ef4057";
        let mut same = http(|_| {});
        same.name = format!("{QUEUE}/tasks/{id}");
        let (code, text) = server.create(Way::Alone, same).await.unwrap_err();
        assert_eq!(code, Code::AlreadyExists);
        assert!(text.contains("recently"), "{text}");
    }
}
