//! A web service whose handlers share one sink, and answer when the record is stored.
//!
//! `POST /orders` publishes the order in its body. The answer is the service's own promise: 201 with the
//! message's id says that Pub/Sub has stored it. An order that Pub/Sub will never take is 422. When
//! nothing moves, callers are turned away with 503 before their order is accepted, or told with 504 that
//! it is not known what became of it: whoever sends it again may make a second message, which readers tell
//! by the order's number.
//!
//! No checkpoints: here the caller is the one who sends again what was not confirmed.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use clap::Parser;
use connector_core::{BoxError, LogAndDrop};
use gcp_wire::Endpoint;
use pubsub_sink::{PublishMessage, Published, PubsubSink};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout;

use crate::figures::Figures;
use crate::shop::{ORDERS, Order, Shop};

/// How long a caller waits for room before it is turned away: less than callers are willing to.
const ROOM: Duration = Duration::from_secs(1);

/// How long a caller waits for the answer about its own order.
const ANSWER: Duration = Duration::from_secs(10);

/// What all handlers share.
#[derive(Debug)]
struct Shared {
    /// Tokio's mutex, held while waiting for room: whoever comes later waits behind, first come first
    /// served. It is not held while the order is on its way, so requests travel side by side and share
    /// batches.
    sink: Mutex<PubsubSink<Order>>,
    /// Told when the sink has ended for good: the service then ends too, and whoever supervises it
    /// starts it again.
    ended: Notify,
}

/// The answer to a caller.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Answer {
    /// The message's id, when it is stored.
    pub message_id: Option<String>,
    /// Why not, otherwise.
    pub problem: Option<String>,
}

/// Serves until it is asked to end, then finishes what is on its way.
///
/// # Errors
///
/// What ended the sink, and what the listener answers.
///
/// # Cancel safety
///
/// Dropping the future breaks the callers' connections; what was accepted is sent while the runtime
/// lives.
pub async fn serve(
    listener: TcpListener,
    pubsub: Endpoint,
    end: impl Future<Output = ()> + Send + 'static,
) -> Result<(), BoxError> {
    let sink = PubsubSink::builder(|order: &Order| Ok(Some(PublishMessage::json(order)?)))
        .topic(ORDERS.parse()?)
        .endpoint(pubsub)
        // Its caller is told what became of an order; one that is rejected must not end the service.
        .on_rejected(LogAndDrop)
        .build()?;
    let shared = Arc::new(Shared {
        sink: Mutex::new(sink),
        ended: Notify::new(),
    });
    let app = Router::new()
        .route("/orders", post(take_order))
        .with_state(Arc::clone(&shared));
    let until = Arc::clone(&shared);
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            tokio::select! {
                () = end => {}
                () = until.ended.notified() => {}
            }
        })
        .await?;
    // Every handler is done. This sends what is left, and gives the error that ended the sink.
    let mut sink = shared.sink.lock().await;
    sink.close().await?;
    Ok(())
}

/// A caller that goes away drops this future: before `submit` its order is not accepted, and after it the
/// order is published all the same.
async fn take_order(
    State(shared): State<Arc<Shared>>,
    Json(order): Json<Order>,
) -> (StatusCode, Json<Answer>) {
    let room = timeout(ROOM, async {
        let mut sink = shared.sink.lock().await;
        sink.ready().await.map(|()| sink.submit(order))
    });
    let receipt = match room.await {
        Ok(Ok(receipt)) => receipt,
        Ok(Err(error)) => {
            shared.ended.notify_one();
            return problem(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
        }
        Err(_) => {
            let text = "too many orders are on their way; this one was not accepted";
            return problem(StatusCode::SERVICE_UNAVAILABLE, text);
        }
    };
    match timeout(ANSWER, receipt).await {
        Ok(Ok(Published::Stored { message_id })) => {
            let answer = Answer {
                message_id: Some(message_id),
                problem: None,
            };
            (StatusCode::CREATED, Json(answer))
        }
        Ok(Ok(Published::Rejected { cause, .. })) => {
            let mut text = "the order was refused".to_owned();
            if let Some(cause) = cause {
                // Writing to a string cannot fail.
                write!(text, ": {cause}").unwrap_or_default();
            }
            problem(StatusCode::UNPROCESSABLE_ENTITY, text)
        }
        Ok(Ok(Published::NotAccepted | Published::Skipped | _)) => problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "the order was not accepted",
        ),
        Ok(Err(error)) => {
            shared.ended.notify_one();
            problem(
                StatusCode::GATEWAY_TIMEOUT,
                format!("unknown what became of it: {error}"),
            )
        }
        Err(_) => problem(
            StatusCode::GATEWAY_TIMEOUT,
            "unknown what became of it: no answer yet",
        ),
    }
}

fn problem(status: StatusCode, text: impl Into<String>) -> (StatusCode, Json<Answer>) {
    (
        status,
        Json(Answer {
            message_id: None,
            problem: Some(text.into()),
        }),
    )
}

/// How `axum_service` is called. Without an address it shows itself: it calls itself, and ends.
#[derive(Debug, Clone, Parser)]
#[non_exhaustive]
pub struct Options {
    /// Serve on this address, with an embedded Pub/Sub server, until Ctrl-C.
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<SocketAddr>,
}

/// Sends two hundred orders to the service, fifty at a time, and compares the answers with the topic.
///
/// # Errors
///
/// What kept the scene from being played.
///
/// # Cancel safety
///
/// Dropping the future ends the service, and the server goes with it.
pub async fn run(options: &Options) -> Result<Figures, BoxError> {
    let shop = Shop::open()?;
    let listen = options
        .listen
        .unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    if options.listen.is_some() {
        println!("listening on http://{address}/orders");
        let end = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
        serve(listener, shop.endpoint(), end).await?;
        let stored = shop.emulator().observe().topic(ORDERS).published;
        return Ok(Figures::of([("orders stored", usize::try_from(stored)?)]));
    }

    let (ask, asked) = tokio::sync::oneshot::channel::<()>();
    let serving = serve(listener, shop.endpoint(), async { drop(asked.await) });
    let calling = async {
        let mut answers = Vec::new();
        for batch in 0..4 {
            let calls = (batch * 50..batch * 50 + 50).map(|id| order(address, Order::numbered(id)));
            answers.extend(futures::future::try_join_all(calls).await?);
        }
        ask.send(()).unwrap_or_default();
        Ok::<_, BoxError>(answers)
    };
    let ((), answers) = futures::try_join!(serving, calling)?;

    let seen = shop.emulator().observe().topic(ORDERS);
    let promised = answers
        .iter()
        .filter_map(|(_, answer)| answer.message_id.as_ref());
    let kept = promised.filter(|id| {
        seen.messages
            .iter()
            .any(|message| message.message_id == **id)
    });
    Ok(Figures::of([
        ("orders sent", answers.len()),
        (
            "answered 201",
            answers.iter().filter(|(status, _)| *status == 201).count(),
        ),
        ("of these in the topic", kept.count()),
        ("messages in the topic", seen.messages.len()),
        ("publish requests", usize::try_from(seen.requests)?),
    ]))
}

/// Sends an order to the service, and answers the status with what it said.
///
/// # Errors
///
/// When the service cannot be reached or answers something else.
///
/// # Cancel safety
///
/// Dropping the future hangs up.
pub async fn order(service: SocketAddr, order: Order) -> Result<(u16, Answer), BoxError> {
    let body = serde_json::to_string(&order)?;
    let request = format!(
        "POST /orders HTTP/1.1\r\nhost: {service}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(service).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or("an answer without a body")?;
    let status = head.split(' ').nth(1).ok_or("an answer without a status")?;
    Ok((status.parse()?, serde_json::from_str(body)?))
}
