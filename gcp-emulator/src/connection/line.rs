//! A byte stream that can be cut, silenced, or made to say one last frame.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;

/// The length of an HTTP/2 frame header (RFC 9113, section 4.1).
const FRAME_HEADER: usize = 9;

/// A stream that can be closed so that the peer sees a crash, not a farewell.
pub(crate) trait Cut {
    fn prepare_cut(&self);
}

impl Cut for TcpStream {
    fn prepare_cut(&self) {
        // With no linger the kernel sends RST when the socket closes. Failing that, the peer sees
        // an end of file, which is a cut as well.
        drop(self.set_zero_linger());
    }
}

impl Cut for DuplexStream {
    fn prepare_cut(&self) {}
}

/// The condition of a connection, changed from outside.
#[derive(Debug, Default)]
pub(crate) struct Line {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    condition: Condition,
    last_frame: Option<Vec<u8>>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    flushes: u64,
    flushed: Vec<Waker>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Condition {
    #[default]
    Open,
    Silent,
    Severed,
    /// The last frame is out; the peer sees an orderly end of the stream.
    Closed,
}

impl Line {
    pub(crate) fn sever(&self) {
        self.change(|state| state.condition = Condition::Severed);
    }

    pub(crate) fn silence(&self) {
        self.change(|state| {
            if state.condition == Condition::Open {
                state.condition = Condition::Silent;
            }
        });
    }

    /// Sends `frame` at the next frame boundary and ends the stream behind it.
    pub(crate) fn finish_with(&self, frame: Vec<u8>) {
        self.change(|state| state.last_frame = Some(frame));
    }

    /// How often everything written so far was handed to the transport.
    pub(crate) fn flushes(&self) -> u64 {
        self.lock().flushes
    }

    /// Waits for a flush after the `seen`-th.
    pub(crate) async fn flushed_after(&self, seen: u64) {
        std::future::poll_fn(|cx| {
            let mut state = self.lock();
            if state.flushes > seen {
                return Poll::Ready(());
            }
            state.flushed.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn note_flush(&self) {
        let waiting = {
            let mut state = self.lock();
            state.flushes += 1;
            std::mem::take(&mut state.flushed)
        };
        for waker in waiting {
            waker.wake();
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let (reader, writer) = {
            let mut state = self.lock();
            change(&mut state);
            (state.reader.take(), state.writer.take())
        };
        for waker in [reader, writer].into_iter().flatten() {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's bytes, subject to its [`Line`].
#[derive(Debug)]
pub(crate) struct Wire<T> {
    io: T,
    line: Arc<Line>,
    outbound: Frames,
    last: Option<(Vec<u8>, usize)>,
}

impl<T: Cut> Wire<T> {
    pub(crate) const fn new(io: T, line: Arc<Line>) -> Self {
        Self {
            io,
            line,
            outbound: Frames::new(),
            last: None,
        }
    }

    /// What the line allows right now. Registers the task for the next change.
    fn condition(&mut self, cx: &Context<'_>, direction: Direction) -> Condition {
        let mut state = self.line.lock();
        let place = match direction {
            Direction::Read => &mut state.reader,
            Direction::Write => &mut state.writer,
        };
        if place
            .as_ref()
            .is_none_or(|waker| !waker.will_wake(cx.waker()))
        {
            *place = Some(cx.waker().clone());
        }
        if self.last.is_none()
            && let Some(frame) = state.last_frame.take()
        {
            self.last = Some((frame, 0));
        }
        let condition = state.condition;
        drop(state);
        if condition == Condition::Severed {
            self.io.prepare_cut();
        }
        condition
    }
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Read,
    Write,
}

impl<T: AsyncWrite + Cut + Unpin> Wire<T> {
    /// Sends the last frame if there is one and a frame boundary is reached.
    fn poll_last(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some((frame, sent)) = &mut self.last else {
            return Poll::Ready(Ok(()));
        };
        if !self.outbound.at_boundary() {
            return Poll::Ready(Ok(()));
        }
        while let Some(rest) = frame.get(*sent..).filter(|rest| !rest.is_empty()) {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *sent += written;
        }
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.last = None;
        self.line.lock().condition = Condition::Closed;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Cut + Unpin> AsyncRead for Wire<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match this.condition(cx, Direction::Read) {
            Condition::Open => {}
            Condition::Silent => return Poll::Pending,
            Condition::Severed => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            Condition::Closed => return Poll::Ready(Ok(())),
        }
        // An idle connection writes nothing by itself, so the last frame leaves here as well.
        if this.last.is_some() && this.outbound.at_boundary() {
            ready!(this.poll_last(cx))?;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.io).poll_read(cx, buf)
    }
}

impl<T: AsyncRead + AsyncWrite + Cut + Unpin> AsyncWrite for Wire<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match this.condition(cx, Direction::Write) {
            Condition::Open => {}
            Condition::Silent => return Poll::Pending,
            Condition::Severed => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            Condition::Closed => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
        if this.last.is_some() && this.outbound.at_boundary() {
            ready!(this.poll_last(cx))?;
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        // Up to the next boundary only, while a last frame waits for it.
        let limit = if this.last.is_some() {
            this.outbound.to_boundary(buf)
        } else {
            buf.len()
        };
        let part = buf.get(..limit).unwrap_or(buf);
        let written = ready!(Pin::new(&mut this.io).poll_write(cx, part))?;
        this.outbound.pass(part.get(..written).unwrap_or(part));
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match this.condition(cx, Direction::Write) {
            Condition::Open | Condition::Closed => {
                ready!(Pin::new(&mut this.io).poll_flush(cx))?;
                this.line.note_flush();
                Poll::Ready(Ok(()))
            }
            Condition::Silent => Poll::Pending,
            Condition::Severed => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match this.condition(cx, Direction::Write) {
            Condition::Open | Condition::Closed => Pin::new(&mut this.io).poll_shutdown(cx),
            Condition::Silent => Poll::Pending,
            Condition::Severed => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }
}

/// Follows the frames of a byte stream to know where one ends.
#[derive(Debug)]
struct Frames {
    header: [u8; FRAME_HEADER],
    header_len: usize,
    payload_left: usize,
}

impl Frames {
    const fn new() -> Self {
        Self {
            header: [0; FRAME_HEADER],
            header_len: 0,
            payload_left: 0,
        }
    }

    const fn at_boundary(&self) -> bool {
        self.header_len == 0 && self.payload_left == 0
    }

    /// How many of `bytes` go before the next boundary; all of them when it lies further on.
    fn to_boundary(&self, bytes: &[u8]) -> usize {
        let mut ahead = Self {
            header: self.header,
            header_len: self.header_len,
            payload_left: self.payload_left,
        };
        for (passed, byte) in bytes.iter().enumerate() {
            if passed > 0 && ahead.at_boundary() {
                return passed;
            }
            ahead.pass(std::slice::from_ref(byte));
        }
        bytes.len()
    }

    fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.payload_left > 0 {
                let step = self.payload_left.min(bytes.len());
                self.payload_left -= step;
                bytes = bytes.get(step..).unwrap_or_default();
                continue;
            }
            let step = (FRAME_HEADER - self.header_len).min(bytes.len());
            let (now, later) = bytes.split_at(step);
            if let Some(place) = self.header.get_mut(self.header_len..self.header_len + step) {
                place.copy_from_slice(now);
            }
            self.header_len += step;
            bytes = later;
            if self.header_len == FRAME_HEADER {
                let [high, middle, low, ..] = self.header;
                self.payload_left = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.header_len = 0;
            }
        }
    }
}

/// A GOAWAY frame (RFC 9113, section 6.8).
pub(crate) fn goaway_frame(last_stream: u32, code: u32) -> Vec<u8> {
    let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
    frame.extend_from_slice(&(last_stream & 0x7fff_ffff).to_be_bytes());
    frame.extend_from_slice(&code.to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_found_whatever_the_pieces() {
        let mut stream = goaway_frame(3, 0);
        stream.extend(goaway_frame(5, 2));
        for piece in 1..stream.len() {
            let mut frames = Frames::new();
            let mut passed = 0;
            for bytes in stream.chunks(piece) {
                frames.pass(bytes);
                passed += bytes.len();
                assert_eq!(
                    frames.at_boundary(),
                    passed % 17 == 0,
                    "{passed} in pieces of {piece}"
                );
            }
        }
    }

    #[test]
    fn the_way_to_the_next_boundary_stops_there() {
        let mut stream = goaway_frame(3, 0);
        stream.extend(goaway_frame(5, 2));
        let mut frames = Frames::new();
        frames.pass(&stream[..4]);
        assert_eq!(frames.to_boundary(&stream[4..]), 13);
    }
}
