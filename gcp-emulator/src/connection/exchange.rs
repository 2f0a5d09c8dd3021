//! One call: request in, response out.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use http_body::Body as _;

use crate::connection::Docket;
use crate::connection::inbound::Inbound;
use crate::connection::line::goaway_frame;
use crate::connection::server::{Connection, Order};
use crate::fault::Sentence;

/// Serves one call, or carries out the sentence its service passed.
pub(super) async fn exchange(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    connection: Connection,
) {
    let docket = Docket::default();
    let (mut parts, stream) = request.into_parts();
    parts.extensions.insert(docket.clone());
    parts.extensions.insert(connection.number);
    let body = tonic::body::Body::new(Inbound::new(stream));
    let request = Request::from_parts(parts, body);
    let response = tokio::select! {
        biased;
        // A client that gave up takes its call with it.
        _ = poll_fn(|cx| respond.poll_reset(cx)) => return,
        response = connection.services.call(request) => response,
    };
    if let Some(sentence) = docket.take() {
        carry_out(sentence, Side::Unanswered(&mut respond), &connection).await;
        return;
    }
    if let Err(reason) = send(response, &mut respond, &docket, &connection).await {
        tracing::trace!(?reason, "a response was not sent to its end");
    }
}

/// The half of the stream a sentence is carried out on.
enum Side<'a> {
    Unanswered(&'a mut SendResponse<Bytes>),
    Answered(&'a mut SendStream<Bytes>),
}

async fn carry_out(sentence: Sentence, side: Side<'_>, connection: &Connection) {
    match sentence {
        Sentence::Reset(code) => match side {
            Side::Unanswered(respond) => respond.send_reset(Reason::from(code)),
            Side::Answered(stream) => stream.send_reset(Reason::from(code)),
        },
        Sentence::GoAway(code) => {
            if connection.orders.send(Order::GoAway(code)).await.is_err() {
                tracing::debug!("a connection that was to go away is gone already");
            }
            std::future::pending::<()>().await;
        }
        Sentence::GoAwayUnseen(code) => {
            let own = match side {
                Side::Unanswered(respond) => respond.stream_id().as_u32(),
                Side::Answered(stream) => stream.stream_id().as_u32(),
            };
            // Streams a client opens have odd numbers: the one before this is two below.
            connection
                .line
                .finish_with(goaway_frame(own.saturating_sub(2), code));
            std::future::pending::<()>().await;
        }
        Sentence::Sever => connection.line.sever(),
        Sentence::Silence => {
            connection.line.silence();
            std::future::pending::<()>().await;
        }
    }
}

/// Why a response could not be sent to its end.
#[derive(Debug)]
enum Broken {
    /// The client reset the stream, or the connection is gone.
    Gone,
    Http(#[expect(dead_code, reason = "shown by Debug in a trace line")] h2::Error),
}

impl From<h2::Error> for Broken {
    fn from(error: h2::Error) -> Self {
        Self::Http(error)
    }
}

async fn send(
    response: Response<tonic::body::Body>,
    respond: &mut SendResponse<Bytes>,
    docket: &Docket,
    connection: &Connection,
) -> Result<(), Broken> {
    let (head, mut body) = response.into_parts();
    // Headers leave with the first thing that follows them, as the service does it: a pull stream
    // on an idle subscription has no headers yet.
    let first = tokio::select! {
        biased;
        _ = poll_fn(|cx| respond.poll_reset(cx)) => return Err(Broken::Gone),
        first = next(&mut body) => first,
    };
    if first.is_last()
        && let Some(sentence) = docket.take()
    {
        carry_out(sentence, Side::Unanswered(respond), connection).await;
        return Ok(());
    }
    let only_head = matches!(first, Part::End);
    let mut stream = respond.send_response(Response::from_parts(head, ()), only_head)?;
    if only_head {
        return Ok(());
    }
    let mut part = first;
    loop {
        let written = connection.line.flushes();
        match part {
            Part::Data(bytes) => send_data(&mut stream, bytes).await?,
            Part::Trailers(trailers) => {
                stream.send_trailers(trailers)?;
                return Ok(());
            }
            Part::End => {
                stream.send_data(Bytes::new(), true)?;
                return Ok(());
            }
        }
        // Only a peer with room is given more: what the window cannot take is not yet delivered.
        // A single byte of it is enough to ask for the next part.
        stream.reserve_capacity(1);
        capacity(&mut stream).await?;
        part = tokio::select! {
            biased;
            _ = poll_fn(|cx| stream.poll_reset(cx)) => return Err(Broken::Gone),
            part = next(&mut body) => part,
        };
        // A sentence takes the place of the trailers: the encoder reads ahead of what was sent.
        if part.is_last()
            && let Some(sentence) = docket.take()
        {
            // What was sent before arrives before: a reset would drop it from the send queue.
            connection.line.flushed_after(written).await;
            carry_out(sentence, Side::Answered(&mut stream), connection).await;
            return Ok(());
        }
    }
}

async fn send_data(stream: &mut SendStream<Bytes>, mut bytes: Bytes) -> Result<(), Broken> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let room = capacity(stream).await?.min(bytes.len());
        stream.send_data(bytes.split_to(room), false)?;
    }
    Ok(())
}

async fn capacity(stream: &mut SendStream<Bytes>) -> Result<usize, Broken> {
    loop {
        let granted = poll_fn(|cx| match stream.poll_reset(cx) {
            std::task::Poll::Ready(_) => std::task::Poll::Ready(None),
            std::task::Poll::Pending => {
                if stream.capacity() > 0 {
                    return std::task::Poll::Ready(Some(Ok(stream.capacity())));
                }
                stream.poll_capacity(cx)
            }
        })
        .await;
        match granted {
            Some(Ok(0)) => {}
            Some(Ok(room)) => return Ok(room),
            Some(Err(error)) => return Err(error.into()),
            None => return Err(Broken::Gone),
        }
    }
}

enum Part {
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

impl Part {
    const fn is_last(&self) -> bool {
        match self {
            Self::Data(_) => false,
            Self::Trailers(_) | Self::End => true,
        }
    }
}

async fn next(body: &mut tonic::body::Body) -> Part {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Part::Data(bytes),
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        return Part::Trailers(trailers);
                    }
                }
            },
            // A body that fails ends its stream with the status tonic makes of it.
            Some(Err(status)) => {
                let mut trailers = HeaderMap::new();
                if status.add_header(&mut trailers).is_err() {
                    return Part::End;
                }
                return Part::Trailers(trailers);
            }
            None => return Part::End,
        }
    }
}
