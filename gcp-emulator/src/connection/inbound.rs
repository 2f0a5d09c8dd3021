//! A request's bytes as a body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame};

/// The receiving half of a stream. Window is given back as bytes are taken, so a service that does
/// not read stops its client.
#[derive(Debug)]
pub(super) struct Inbound {
    stream: RecvStream,
    data_ended: bool,
}

impl Inbound {
    pub(super) const fn new(stream: RecvStream) -> Self {
        Self {
            stream,
            data_ended: false,
        }
    }
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let this = self.get_mut();
        if !this.data_ended {
            match ready!(this.stream.poll_data(cx)) {
                Some(Ok(bytes)) => {
                    // Fails only for a stream that is over, which the next poll reports.
                    drop(this.stream.flow_control().release_capacity(bytes.len()));
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => this.data_ended = true,
            }
        }
        match ready!(this.stream.poll_trailers(cx)) {
            Ok(Some(trailers)) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            Ok(None) => Poll::Ready(None),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }
}
