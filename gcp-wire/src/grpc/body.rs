use std::convert::Infallible;
use std::io::{IoSlice, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body::{Body, Frame};
use prost::Message;
use tokio::sync::mpsc;

/// A message that is encoded already, in one or several pieces.
///
/// Cheap to clone, so that the same bytes can be sent again. Sending copies nothing.
#[derive(Clone, Debug, Default)]
pub struct EncodedBody {
    pieces: Arc<[Bytes]>,
    len: usize,
}

impl EncodedBody {
    /// The message whose encoding is these pieces, one after the other.
    #[must_use]
    pub fn new(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let pieces: Arc<[Bytes]> = pieces
            .into_iter()
            .filter(|piece| !piece.is_empty())
            .collect();
        let len = pieces.iter().map(Bytes::len).sum();
        Self { pieces, len }
    }

    /// Encodes `message`.
    #[must_use]
    pub fn encode(message: &impl Message) -> Self {
        Self::from(Bytes::from(message.encode_to_vec()))
    }

    /// The length of the encoding in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the encoding is empty, as that of a message with default values is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same message, compressed; it can only be framed as compressed.
    pub(crate) fn gzipped(&self) -> Self {
        let mut encoder = GzEncoder::new(Vec::with_capacity(self.len / 2), Compression::fast());
        let written = self
            .pieces
            .iter()
            .try_for_each(|piece| encoder.write_all(piece));
        match written.and_then(|()| encoder.finish()) {
            Ok(bytes) => Self::new([Bytes::from(bytes)]),
            // Writing to memory does not fail; if it ever did, an uncompressed body is as right.
            Err(_) => self.clone(),
        }
    }
}

impl From<Bytes> for EncodedBody {
    fn from(bytes: Bytes) -> Self {
        Self {
            len: bytes.len(),
            pieces: Arc::new([bytes]),
        }
    }
}

impl From<Vec<Bytes>> for EncodedBody {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self::new(pieces)
    }
}

/// The flag and the length in front of a message.
const PREFIX: usize = 5;

/// One framed message on its way out: the five-byte prefix and the pieces, never joined.
#[derive(Debug)]
pub(crate) struct Outgoing {
    prefix: [u8; PREFIX],
    pieces: Arc<[Bytes]>,
    /// Which piece is next, counted from one; zero stands for the prefix.
    at: usize,
    /// How much of that has gone.
    gone: usize,
    remaining: usize,
}

impl Outgoing {
    /// The prefix, then the pieces.
    fn part(&self, at: usize) -> &[u8] {
        match at.checked_sub(1) {
            None => &self.prefix,
            Some(piece) => self.pieces.get(piece).map_or(&[], |piece| piece),
        }
    }
}

impl Buf for Outgoing {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.part(self.at).get(self.gone..).unwrap_or_default()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let parts = (self.at + 1..=self.pieces.len()).map(|at| self.part(at));
        let chunks = std::iter::once(self.chunk()).chain(parts);
        let mut filled = 0;
        for (slice, chunk) in slices
            .iter_mut()
            .zip(chunks.filter(|chunk| !chunk.is_empty()))
        {
            *slice = IoSlice::new(chunk);
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, count: usize) {
        assert!(
            count <= self.remaining,
            "advanced beyond the end of a message"
        );
        self.remaining -= count;
        self.gone += count;
        while self.at <= self.pieces.len() {
            let length = self.part(self.at).len();
            if self.gone < length {
                return;
            }
            self.gone -= length;
            self.at += 1;
        }
    }
}

/// Frames a message: a flag for compression, the length in four bytes, the message.
///
/// `None` when it is longer than a frame can say.
pub(crate) fn frame(body: &EncodedBody, compressed: bool) -> Option<Outgoing> {
    let [a, b, c, d] = u32::try_from(body.len).ok()?.to_be_bytes();
    Some(Outgoing {
        prefix: [u8::from(compressed), a, b, c, d],
        pieces: Arc::clone(&body.pieces),
        at: 0,
        gone: 0,
        remaining: PREFIX + body.len,
    })
}

/// The body of a request.
#[derive(Debug)]
pub(crate) enum RequestBody {
    /// One message.
    Single(Option<Outgoing>),
    /// Messages as they come; the end of the queue is the end of the request.
    Queue(mpsc::Receiver<Outgoing>),
}

impl Body for RequestBody {
    type Data = Outgoing;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Outgoing>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Single(message) => Poll::Ready(message.take()),
            Self::Queue(queue) => queue.poll_recv(context),
        };
        next.map(|message| message.map(|message| Ok(Frame::data(message))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Single(message) => message.is_none(),
            Self::Queue(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    fn sample() -> EncodedBody {
        EncodedBody::new(["ab", "", "cde", "f"].map(|piece| Bytes::from_static(piece.as_bytes())))
    }

    #[test]
    fn a_frame_is_flag_length_and_message() {
        let mut out = frame(&sample(), false).unwrap();
        assert_eq!(out.remaining(), 11);
        assert_eq!(out.copy_to_bytes(11), &b"\x00\x00\x00\x00\x06abcdef"[..]);
        let mut empty = frame(&EncodedBody::default(), false).unwrap();
        assert_eq!(empty.copy_to_bytes(5), &[0; 5][..]);
    }

    #[test]
    fn advancing_by_any_steps_gives_the_same_bytes() {
        for step in 1..=11 {
            let mut out = frame(&sample(), true).unwrap();
            let mut seen = Vec::new();
            while out.has_remaining() {
                let count = step.min(out.chunk().len());
                seen.extend_from_slice(&out.chunk()[..count]);
                out.advance(count);
            }
            assert_eq!(seen, b"\x01\x00\x00\x00\x06abcdef", "{step}");
            let mut out = frame(&sample(), true).unwrap();
            out.advance(step);
            assert_eq!(out.copy_to_bytes(11 - step), seen[step..]);
        }
    }

    #[test]
    fn sending_does_not_copy_the_pieces() {
        let piece = Bytes::from(vec![7; 10_000]);
        let out = frame(&EncodedBody::new([piece.clone()]), false).unwrap();
        let mut slices = [IoSlice::new(&[]); 4];
        assert_eq!(out.chunks_vectored(&mut slices), 2);
        assert_eq!(slices[1].as_ptr(), piece.as_ptr());
    }

    #[test]
    fn a_compressed_body_unpacks_to_the_same_bytes() {
        let body = EncodedBody::new(vec![
            Bytes::from(vec![1; 5_000]),
            Bytes::from(vec![2; 5_000]),
        ]);
        let packed = body.gzipped();
        assert!(packed.len() < 200);
        let mut bytes = Vec::new();
        GzDecoder::new(&packed.pieces[0][..])
            .read_to_end(&mut bytes)
            .unwrap();
        assert_eq!(bytes, [vec![1; 5_000], vec![2; 5_000]].concat());
    }
}
