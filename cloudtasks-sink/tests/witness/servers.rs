//! The witness, and an HTTP server that its tasks call.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use cloudtasks_sink::{CloudTasksSink, Endpoint, HttpTask};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

pub(crate) const QUEUE: &str = "projects/demo/locations/us-central1/queues/q1";

/// Longer than a dispatch over loopback ever takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A call as it reached the target.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Bytes,
}

/// An HTTP server that answers 200 to everything and shows what it was asked.
pub(crate) async fn target() -> (SocketAddr, mpsc::Receiver<Call>) {
    answering(StatusCode::OK).await
}

/// An HTTP server that answers the same to everything.
pub(crate) async fn answering(status: StatusCode) -> (SocketAddr, mpsc::Receiver<Call>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (calls, seen) = mpsc::channel(1_000);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let calls = calls.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let calls = calls.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let headers = head.headers.iter().map(|(name, value)| {
                        (
                            name.to_string(),
                            String::from_utf8_lossy(value.as_bytes()).into_owned(),
                        )
                    });
                    let call = Call {
                        method: head.method.to_string(),
                        target: head.uri.to_string(),
                        headers: headers.collect(),
                        body: body.collect().await.unwrap().to_bytes(),
                    };
                    calls.send(call).await.unwrap();
                    let mut response = Response::new(Full::new(Bytes::new()));
                    *response.status_mut() = status;
                    Ok::<_, Infallible>(response)
                }
            });
            tokio::spawn(async move {
                // A connection that the emulator gives up is none of the test's business.
                let _served = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    (address, seen)
}

/// The emulator with one queue.
pub(crate) async fn witness() -> Endpoint {
    Endpoint::emulator(&witness_at().await.to_string()).unwrap()
}

/// The address of an emulator with one queue.
pub(crate) async fn witness_at() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let issuer = format!("http://{address}");
    tokio::spawn(async move {
        cloud_tasks_emulator::serve(listener, issuer, vec![QUEUE.to_owned()])
            .await
            .unwrap();
    });
    address
}

pub(crate) async fn next(calls: &mut mpsc::Receiver<Call>) -> Call {
    tokio::time::timeout(LIMIT, calls.recv())
        .await
        .unwrap()
        .unwrap()
}

pub(crate) fn tasks(endpoint: Endpoint) -> cloudtasks_sink::SinkBuilder<HttpTask> {
    CloudTasksSink::builder(|task: &HttpTask| Ok(Some(task.clone())))
        .queue(QUEUE.parse().unwrap())
        .endpoint(endpoint)
}
