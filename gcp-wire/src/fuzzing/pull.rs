//! Answers to a streaming pull, as they come from the connection.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame};

use super::pulled::{Said, said_by};
use crate::{
    PulledResponse,
    grpc::{Event, Reader},
};

/// The largest response that the target reads: far below what a stream allows, so that short
/// inputs reach it.
const LIMIT: usize = 2_048;

/// The most bytes that say how the stream is cut and how it ends.
const MOST_HEAD: usize = 64;

/// What a stream brought, and how it ended.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Brought {
    responses: Vec<Said>,
    /// The bytes of the responses together.
    encoded: usize,
    end: String,
}

impl Brought {
    pub(super) fn take(&mut self, response: &PulledResponse) {
        self.encoded += response.encoded_len();
        self.responses.push(said_by(response));
    }

    fn end(mut self, end: String) -> Self {
        self.end = end;
        self
    }
}

/// Whatever bytes and trailers a server answers with, the stream brings the same responses however
/// they are cut into frames, none of them larger than the limit, and comes to an end.
pub fn pull_responses(bytes: &[u8]) {
    pulls_by(bytes, read);
}

/// The first byte says how many of the next are for trailers and cuts; the others are the stream.
pub(super) fn pulls_by(bytes: &[u8], read: impl Fn(Vec<Bytes>, &HeaderMap) -> Brought) {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let (head, stream) = rest.split_at(rest.len().min(usize::from(*first) % MOST_HEAD));
    let trailers = trailers(head);
    let whole = Bytes::copy_from_slice(stream);
    let cut = read(frames(whole.clone(), head), &trailers);
    let joined = read(vec![whole], &trailers);
    assert_eq!(cut, joined, "cutting into frames changes nothing");
    // What the generated type had to read is written anew: a negative number of 32 bits may come in
    // five bytes and is written in ten.
    let most = 2 * stream.len();
    assert!(joined.encoded <= most, "nothing is made of nothing");
}

fn frames(mut stream: Bytes, cuts: &[u8]) -> Vec<Bytes> {
    let mut cuts = cuts.iter().cycle();
    let mut frames = Vec::new();
    while !stream.is_empty() {
        let length = cuts
            .next()
            .map_or(stream.len(), |cut| usize::from(*cut % 17));
        frames.push(stream.split_to(length.min(stream.len())));
        // One byte more, so that a cut of nothing makes an empty frame and gets on.
        frames.push(stream.split_to(stream.len().min(1)));
    }
    frames
}

fn trailers(head: &[u8]) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    let Some((status, rest)) = head.split_first() else {
        return trailers;
    };
    trailers.insert("grpc-status", HeaderValue::from(u16::from(*status % 20)));
    if let Ok(message) = HeaderValue::from_bytes(rest) {
        trailers.insert("grpc-message", message);
    }
    if status & 0x80 != 0
        && let Ok(details) = HeaderValue::from_str(&STANDARD_NO_PAD.encode(rest))
    {
        trailers.insert("grpc-status-details-bin", details);
    }
    trailers
}

/// Reads a stream as a pull does.
fn read(frames: Vec<Bytes>, trailers: &HeaderMap) -> Brought {
    let mut reader = Reader::new(Answer::new(frames, trailers), LIMIT);
    let mut context = Context::from_waker(Waker::noop());
    let mut brought = Brought::default();
    loop {
        match reader.poll_event(&mut context) {
            Poll::Ready(Ok(Event::Message(message))) => {
                assert!(message.len() <= LIMIT, "a response over the limit");
                match PulledResponse::read(message) {
                    Ok(response) => brought.take(&response),
                    Err(fault) => return brought.end(format!("{fault:?}")),
                }
            }
            Poll::Ready(Ok(Event::End(verdict))) => return brought.end(format!("{verdict:?}")),
            Poll::Ready(Err(fault)) => return brought.end(format!("{fault:?}")),
            Poll::Pending => panic!("an answer that is there is not waited for"),
        }
    }
}

/// An answer that is there already.
#[derive(Debug)]
pub(super) struct Answer(VecDeque<Frame<Bytes>>);

impl Answer {
    fn new(frames: Vec<Bytes>, trailers: &HeaderMap) -> Self {
        let mut frames: VecDeque<_> = frames.into_iter().map(Frame::data).collect();
        if !trailers.is_empty() {
            frames.push_back(Frame::trailers(trailers.clone()));
        }
        Self(frames)
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}
