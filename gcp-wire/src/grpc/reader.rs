use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;

use super::{Pieces, head_status};
use crate::status::{Cause, DecodeFault};

const PREFIX: usize = 5;

/// What came of a message that goes on is kept as it came in pieces of at least so many bytes, the
/// largest frames of a server that agrees to nothing. Less than that is put together: it would keep
/// much more memory alive than it has.
const PIECE: usize = 16 << 10;

/// Small pieces are put together to no more than this.
const JOINED: usize = 64 << 10;

/// Reads the messages of an answer, without copying what comes in large pieces.
#[derive(Debug)]
pub(crate) struct Reader<B> {
    body: B,
    received: VecDeque<Bytes>,
    /// What came in small pieces after that.
    tail: BytesMut,
    /// The bytes of both.
    buffered: usize,
    /// The length of the message that has begun.
    begun: Option<usize>,
    limit: usize,
}

/// What comes out of an answer.
#[derive(Debug)]
pub(crate) enum Event {
    Message(Pieces),
    /// The end, with the server's verdict: `Ok`, or why not.
    End(Result<(), Cause>),
}

/// Why reading stopped.
#[derive(Debug)]
pub(crate) enum ReadFault<E> {
    Transport(E),
    Decode(DecodeFault),
    /// The end came without a status.
    NoStatus,
}

impl<B> Reader<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    pub(crate) fn new(body: B, limit: usize) -> Self {
        Self {
            body,
            received: VecDeque::new(),
            tail: BytesMut::new(),
            buffered: 0,
            begun: None,
            limit,
        }
    }

    /// Cancel safe: what was received stays here until a whole message is taken.
    pub(crate) fn poll_event(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Event, ReadFault<B::Error>>> {
        loop {
            if let Some(message) = self.take_message().map_err(ReadFault::Decode)? {
                return Poll::Ready(Ok(Event::Message(message)));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.keep(data),
                    Err(frame) => {
                        if let Ok(trailers) = frame.into_trailers() {
                            return Poll::Ready(self.finish(&trailers));
                        }
                    }
                },
                Some(Err(error)) => return Poll::Ready(Err(ReadFault::Transport(error))),
                None => return Poll::Ready(Err(ReadFault::NoStatus)),
            }
        }
    }

    fn finish(&self, trailers: &HeaderMap) -> Result<Event, ReadFault<B::Error>> {
        match head_status(trailers) {
            None => Err(ReadFault::NoStatus),
            Some(Ok(())) if self.buffered > 0 || self.begun.is_some() => Err(ReadFault::Decode(
                malformed("it ends in the middle of a message"),
            )),
            Some(verdict) => Ok(Event::End(verdict)),
        }
    }

    /// Keeps what came until the rest of its message is there.
    fn keep(&mut self, data: Bytes) {
        let missing = self.begun.map_or(0, |len| len - self.buffered);
        self.buffered += data.len();
        if data.len() < PIECE && data.len() < missing {
            if self.tail.len() + data.len() > JOINED {
                self.keep_tail();
            }
            if self.tail.is_empty() {
                self.tail.reserve(missing.min(JOINED));
            }
            self.tail.extend_from_slice(&data);
        } else if !data.is_empty() {
            self.keep_tail();
            self.received.push_back(data);
        }
    }

    fn keep_tail(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            self.received.push_back(tail.freeze());
        }
    }

    fn take_message(&mut self) -> Result<Option<Pieces>, DecodeFault> {
        let len = match self.begun {
            Some(len) => len,
            None if self.buffered < PREFIX => return Ok(None),
            None => {
                let prefix = self.take(PREFIX).into_bytes();
                let (flag, len) = prefix.split_at(1);
                if flag != [0] {
                    // We accept no compression, so nothing else is allowed.
                    return Err(malformed("it is compressed, which was not asked for"));
                }
                let len = len
                    .iter()
                    .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
                let len = usize::try_from(len)
                    .ok()
                    .filter(|&bytes| bytes <= self.limit)
                    .ok_or(DecodeFault::TooLarge {
                        bytes: len,
                        limit: self.limit,
                    })?;
                self.begun = Some(len);
                len
            }
        };
        if self.buffered < len {
            return Ok(None);
        }
        self.begun = None;
        Ok(Some(self.take(len)))
    }

    /// Takes `len` bytes, of which at least as many are here.
    fn take(&mut self, len: usize) -> Pieces {
        self.keep_tail();
        self.buffered -= len;
        let mut taken = Pieces::default();
        while let Some(front) = self.received.front_mut() {
            let left = len - taken.len();
            if front.len() > left {
                if left > 0 {
                    taken.push(front.split_to(left));
                }
                break;
            }
            taken.push(std::mem::take(front));
            self.received.pop_front();
        }
        taken
    }
}

fn malformed(what: &str) -> DecodeFault {
    DecodeFault::Malformed(what.to_owned())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use proptest::prelude::*;

    use super::*;
    use crate::status::Code;

    type Frames = Vec<Result<Frame<Bytes>, Infallible>>;

    fn trailers(status: &'static str) -> Result<Frame<Bytes>, Infallible> {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", status.parse().unwrap());
        Ok(Frame::trailers(trailers))
    }

    fn data(bytes: &[u8]) -> Result<Frame<Bytes>, Infallible> {
        Ok(Frame::data(Bytes::copy_from_slice(bytes)))
    }

    fn read(frames: Frames, limit: usize) -> (Vec<Bytes>, Result<Event, ReadFault<Infallible>>) {
        let mut reader = Reader::new(StreamBody::new(stream::iter(frames)), limit);
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut messages = Vec::new();
        loop {
            match reader.poll_event(&mut context) {
                Poll::Ready(Ok(Event::Message(message))) => messages.push(message.into_bytes()),
                Poll::Ready(end) => return (messages, end),
                Poll::Pending => panic!("a stream of ready frames is never pending"),
            }
        }
    }

    #[test]
    fn a_message_in_one_frame_is_not_copied() {
        let bytes = Bytes::from_static(b"\0\0\0\0\x03abc\0\0\0\0\0");
        let frames = vec![Ok(Frame::data(bytes.clone())), trailers("0")];
        let (messages, end) = read(frames, 10);
        assert_eq!(messages, [&b"abc"[..], b""]);
        assert_eq!(messages[0].as_ptr(), bytes[5..].as_ptr());
        assert!(matches!(end, Ok(Event::End(Ok(())))));
    }

    fn pieces(message: &[u8], cuts: &[usize]) -> Vec<Bytes> {
        let mut bytes = vec![0; 5];
        bytes[1..].copy_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(message);
        let mut whole = Bytes::from(bytes);
        let mut frames: Frames = Vec::new();
        for cut in cuts {
            frames.push(Ok(Frame::data(whole.split_to(whole.len().min(*cut)))));
        }
        frames.push(Ok(Frame::data(whole)));
        let mut reader = Reader::new(StreamBody::new(stream::iter(frames)), message.len());
        let mut context = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(Ok(Event::Message(message))) = reader.poll_event(&mut context) else {
            panic!("no message")
        };
        message.into_pieces()
    }

    #[test]
    fn large_pieces_stay_as_they_came_and_small_ones_are_put_together() {
        let message: Vec<u8> = (0..200_000_u32).map(|at| at.to_be_bytes()[3]).collect();
        for (cuts, lens) in [
            (vec![64 << 10; 3], vec![65_531, 65_536, 65_536, 3_397]),
            (vec![5, 30_000, 20_000], vec![30_000, 20_000, 150_000]),
            (
                vec![5, 30_000, 10, 10, 20_000],
                vec![30_000, 20, 20_000, 149_980],
            ),
            (vec![5; 30_000], vec![65_535, 65_535, 18_925, 50_005]),
        ] {
            let pieces = pieces(&message, &cuts);
            assert_eq!(pieces.concat(), message);
            let found: Vec<usize> = pieces.iter().map(Bytes::len).collect();
            assert_eq!(found, lens, "{} cuts", cuts.len());
        }
    }

    #[test]
    fn a_message_over_the_limit_is_refused_before_it_is_received() {
        let (messages, end) = read(vec![data(b"\0\x7f\xff\xff\xff")], 1_000);
        assert!(messages.is_empty());
        let Err(ReadFault::Decode(fault)) = end else {
            panic!("{end:?}")
        };
        assert_eq!(
            fault,
            DecodeFault::TooLarge {
                bytes: 0x7fff_ffff,
                limit: 1_000
            }
        );
    }

    #[test]
    fn an_answer_without_a_status_is_no_clean_end() {
        let (_, end) = read(vec![data(b"\0\0\0\0\0")], 10);
        assert!(matches!(end, Err(ReadFault::NoStatus)), "{end:?}");
        let (_, end) = read(vec![Ok(Frame::trailers(HeaderMap::new()))], 10);
        assert!(matches!(end, Err(ReadFault::NoStatus)), "{end:?}");
    }

    #[test]
    fn a_cut_message_and_a_compressed_one_are_malformed() {
        for bytes in [&b"\0\0\0\0\x05ab"[..], b"\0\0", b"\x01\0\0\0\0"] {
            let (_, end) = read(vec![data(bytes), trailers("0")], 10);
            let malformed = matches!(end, Err(ReadFault::Decode(DecodeFault::Malformed(_))));
            assert!(malformed, "{bytes:?}: {end:?}");
        }
        // The server's own verdict counts more than a message it left unfinished.
        let (_, end) = read(vec![data(b"\0\0\0\0\x05ab"), trailers("5")], 10);
        let Ok(Event::End(Err(Cause::Status { code, .. }))) = end else {
            panic!("{end:?}")
        };
        assert_eq!(code, Code::NotFound);
    }

    proptest! {
        #[test]
        fn messages_survive_any_split_into_frames(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
            cuts in prop::collection::vec(1_usize..30, 1..60),
        ) {
            let mut bytes = Vec::new();
            for message in &messages {
                bytes.push(0);
                bytes.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
                bytes.extend_from_slice(message);
            }
            let mut rest = &bytes[..];
            let mut frames = Vec::new();
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let (head, tail) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
                frames.push(data(head));
                rest = tail;
            }
            frames.push(trailers("0"));
            let (read, end) = read(frames, 100);
            prop_assert_eq!(read, messages);
            prop_assert!(matches!(end, Ok(Event::End(Ok(())))));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(chunks in prop::collection::vec(any::<Vec<u8>>(), 0..8)) {
            let frames = chunks.iter().map(|chunk| data(chunk)).collect();
            let (messages, _) = read(frames, 1_000);
            prop_assert!(messages.iter().all(|message| message.len() <= 1_000));
        }
    }
}
