//! A small gRPC server over hyper, in memory or over TLS. It depends on no gRPC crate, so that no
//! feature of one changes what the client under test does.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::stream;
use gcp_wire::{Connection, ConnectionOptions, Credentials, Endpoint, Service};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;
pub(crate) type Answer = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
pub(crate) type Handler = Arc<dyn Fn(Request<Incoming>) -> Answer + Send + Sync>;

pub(crate) const DEADLINE: std::time::Duration = std::time::Duration::from_secs(20);
pub(crate) const TOPIC: &str = "projects/demo/topics/orders";

pub(crate) fn handler<F, A>(handle: F) -> Handler
where
    F: Fn(Request<Incoming>) -> A + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    Arc::new(move |request| Box::pin(handle(request)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "test servers run beside the client"
)]
pub(crate) fn spawn<F>(task: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    tokio::spawn(task)
}

pub(crate) async fn serve<S>(stream: S, handler: Handler)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let answer = handler(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    // The error is that of a client that went away.
    hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(1_000)
        .max_header_list_size(1 << 20)
        .serve_connection(TokioIo::new(stream), service)
        .await
        .ok();
}

/// An endpoint in memory, and the count of the connections made to it.
pub(crate) fn in_memory(handler: Handler) -> (Endpoint, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let connections = Arc::clone(&count);
    let endpoint = Endpoint::in_memory(move || {
        connections.fetch_add(1, Ordering::SeqCst);
        let (client, server) = tokio::io::duplex(1 << 16);
        drop(spawn(serve(server, Arc::clone(&handler))));
        Ok(client)
    });
    (endpoint, count)
}

pub(crate) fn unary(endpoint: Endpoint) -> Connection {
    Connection::unary(
        endpoint,
        Credentials::anonymous(),
        ConnectionOptions::default(),
    )
    .unwrap()
}

/// A whole request, or what came of it before the client went away.
pub(crate) async fn read(request: Request<Incoming>) -> (HeaderMap, Bytes) {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    (head.headers, body)
}

/// The message of a unary request, without its five bytes of prefix.
pub(crate) async fn message<M: Message + Default>(request: Request<Incoming>) -> M {
    let (_, body) = read(request).await;
    M::decode(body.slice(5..)).unwrap()
}

pub(crate) fn framed(message: &[u8]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.len()).unwrap());
    bytes.extend_from_slice(message);
    bytes.freeze()
}

/// An answer of these frames, then these trailers.
pub(crate) fn answer(frames: Vec<Bytes>, trailers: HeaderMap) -> Response<Body> {
    let frames = frames
        .into_iter()
        .map(Frame::data)
        .chain([Frame::trailers(trailers)]);
    streamed(stream::iter(frames))
}

pub(crate) fn streamed(
    frames: impl futures::Stream<Item = Frame<Bytes>> + Send + 'static,
) -> Response<Body> {
    use futures::StreamExt as _;
    let body = StreamBody::new(frames.map(Ok::<_, Infallible>)).boxed_unsync();
    Response::builder()
        .header("content-type", "application/grpc")
        .body(body)
        .unwrap()
}

pub(crate) fn status(code: i32, message: &str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    trailers.insert("grpc-message", message.parse().unwrap());
    trailers
}

pub(crate) fn ok(message: &impl Message) -> Response<Body> {
    answer(vec![framed(&message.encode_to_vec())], status(0, ""))
}

pub(crate) fn refuse(code: i32, message: &str) -> Response<Body> {
    answer(vec![], status(code, message))
}

/// Publishes nothing to [`TOPIC`], the simplest call there is.
pub(crate) async fn publish(
    connection: &Connection,
) -> Result<gcp_wire::PublishedIds, gcp_wire::RpcError> {
    let request = gcp_wire::proto::pubsub::PublishRequest {
        topic: TOPIC.into(),
        ..Default::default()
    };
    connection
        .call(&gcp_wire::method::PUBLISH, TOPIC, request, DEADLINE)
        .await
}

pub(crate) fn published() -> Response<Body> {
    ok(&gcp_wire::proto::pubsub::PublishResponse {
        message_ids: vec!["1".into()],
    })
}

/// The whole chain of an error as one text, as a log would have it.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

pub(crate) fn production() -> Endpoint {
    Endpoint::production(Service::Pubsub)
}
