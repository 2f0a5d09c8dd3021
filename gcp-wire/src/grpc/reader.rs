use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use percent_encoding::percent_decode;

use crate::headers::STATUS;
use crate::status::{Cause, Code, DecodeFault, Details};

const PREFIX: usize = 5;

/// A message of at most so many bytes is put together in memory that is used again: ten times what
/// the service's responses mostly have.
const KEPT: usize = 1 << 20;

/// Reads the messages of an answer, without copying those that come in one piece.
#[derive(Debug)]
pub(crate) struct Reader<B> {
    body: B,
    received: VecDeque<Bytes>,
    buffered: usize,
    /// Where messages in several pieces are put together: the same memory again and again, as long as
    /// nobody keeps a message.
    joined: BytesMut,
    /// The length of the message that has begun.
    begun: Option<usize>,
    limit: usize,
}

/// What comes out of an answer.
#[derive(Debug)]
pub(crate) enum Event {
    Message(Bytes),
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
            buffered: 0,
            joined: BytesMut::new(),
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
                    Ok(data) => {
                        self.buffered += data.len();
                        self.received.push_back(data);
                    }
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

    fn take_message(&mut self) -> Result<Option<Bytes>, DecodeFault> {
        let len = match self.begun {
            Some(len) => len,
            None if self.buffered < PREFIX => return Ok(None),
            None => {
                let prefix = self.take(PREFIX);
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
            self.gather(len);
            return Ok(None);
        }
        self.begun = None;
        Ok(Some(self.take(len)))
    }

    /// Puts together what has come of a message of `len` bytes, so that the memory that it was
    /// received in can be received into again.
    fn gather(&mut self, len: usize) {
        if len <= KEPT {
            self.joined.reserve(len - self.joined.len());
            join(&mut self.received, &mut self.joined, len);
        }
    }

    /// Takes `len` bytes, of which at least as many are here.
    fn take(&mut self, len: usize) -> Bytes {
        self.buffered -= len;
        while self.received.front().is_some_and(Bytes::is_empty) {
            self.received.pop_front();
        }
        if self.joined.is_empty()
            && let Some(front) = self.received.front_mut()
            && front.len() >= len
        {
            return front.split_to(len);
        }
        // What is exceptionally large is not kept for the next.
        let mut large = BytesMut::new();
        let joined = if len <= KEPT {
            &mut self.joined
        } else {
            &mut large
        };
        joined.reserve(len - joined.len());
        join(&mut self.received, joined, len);
        joined.split().freeze()
    }
}

/// Moves what was received into `joined`, until that has `len` bytes.
fn join(received: &mut VecDeque<Bytes>, joined: &mut BytesMut, len: usize) {
    while joined.len() < len {
        let Some(front) = received.front_mut() else {
            return;
        };
        let count = front.len().min(len - joined.len());
        joined.extend_from_slice(&front.split_to(count));
        if !front.has_remaining() {
            received.pop_front();
        }
    }
}

fn malformed(what: &str) -> DecodeFault {
    DecodeFault::Malformed(what.to_owned())
}

/// The server's verdict, from trailers or from the headers of an answer without messages.
pub(crate) fn head_status(headers: &HeaderMap) -> Option<Result<(), Cause>> {
    let code = headers.get(&STATUS)?;
    if code.as_bytes() == b"0" {
        return Some(Ok(()));
    }
    let code = code
        .to_str()
        .ok()
        .and_then(|code| code.parse().ok())
        .map_or(Code::Unknown, Code::from_number);
    if code == Code::Ok {
        return Some(Ok(()));
    }
    let message = headers
        .get("grpc-message")
        .map_or_else(String::new, |message| {
            crate::status::bounded(&percent_decode(message.as_bytes()).decode_utf8_lossy())
        });
    let details = match headers.get("grpc-status-details-bin") {
        None => Details::default(),
        Some(details) => match Details::from_header(details.as_bytes()) {
            Ok(details) => details,
            Err(_) => {
                return Some(Err(Cause::Decode {
                    fault: DecodeFault::Details,
                    code,
                }));
            }
        },
    };
    Some(Err(Cause::Status {
        code,
        message,
        details,
    }))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http_body::Frame;
    use http_body_util::StreamBody;
    use proptest::prelude::*;

    use super::*;

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
                Poll::Ready(Ok(Event::Message(message))) => messages.push(message),
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

    #[test]
    fn a_status_message_is_percent_decoded() {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", "3".parse().unwrap());
        headers.insert("grpc-message", "caf%C3%A9 %zz %ff".parse().unwrap());
        let Some(Err(Cause::Status { code, message, .. })) = head_status(&headers) else {
            panic!("no status")
        };
        assert_eq!(
            (code, message.as_str()),
            (Code::InvalidArgument, "café %zz \u{fffd}")
        );
    }

    #[test]
    fn a_status_that_is_no_number_is_unknown_and_not_success() {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-status", "zero".parse().unwrap());
        let verdict = head_status(&headers).unwrap().unwrap_err();
        assert!(
            matches!(
                verdict,
                Cause::Status {
                    code: Code::Unknown,
                    ..
                }
            ),
            "{verdict:?}"
        );
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

        #[test]
        fn no_headers_make_the_status_panic(
            status in "\\PC{0,8}", message in "\\PC{0,20}", details in "[A-Za-z0-9+/=]{0,40}",
        ) {
            let mut headers = HeaderMap::new();
            for (name, value) in [
                ("grpc-status", status.into_bytes()),
                ("grpc-message", message.into_bytes()),
                ("grpc-status-details-bin", details.into_bytes()),
            ] {
                if let Ok(value) = http::HeaderValue::from_bytes(&value) {
                    headers.insert(name, value);
                }
            }
            prop_assert_eq!(head_status(&headers).is_some(), headers.contains_key("grpc-status"));
        }
    }
}
