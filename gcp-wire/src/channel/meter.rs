use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::has_budget_remaining;

/// After so many bytes in a row whoever waits for them has a turn, and the connection the next one.
/// What a connection reads and what is made of it are then still in the cache of a processor core
/// (1 to 2 MiB on today's servers) when the next task wants them, however much has arrived.
const TURN: usize = 128 << 10;

/// What a connection has received, below TLS.
#[derive(Debug, Default)]
pub(super) struct Meter {
    received: AtomicU64,
    dry: AtomicBool,
}

impl Meter {
    /// The bytes so far. A silent peer is told by them from a slow answer.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Whether the last attempt to read found nothing.
    pub(super) fn is_dry(&self) -> bool {
        self.dry.load(Ordering::Relaxed)
    }
}

/// A stream that keeps a [`Meter`], and that lets others have their turn when much has arrived.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    meter: Arc<Meter>,
    /// The bytes of this turn.
    turn: usize,
}

impl<S> Metered<S> {
    pub(super) const fn new(stream: S, meter: Arc<Meter>) -> Self {
        Self {
            stream,
            meter,
            turn: 0,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.turn >= TURN {
            self.turn = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        // A task that has used up its own turn is refused although there may be more.
        let dry = read.is_pending() && has_budget_remaining();
        self.meter.dry.store(dry, Ordering::Relaxed);
        if read.is_pending() {
            self.turn = 0;
        }
        ready!(read)?;
        let count = buffer.filled().len() - before;
        self.turn += count;
        self.meter
            .received
            .fetch_add(count as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::{Wake, Waker};

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Reads so many bytes at once.
    fn read(
        stream: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
        bytes: usize,
    ) -> Poll<usize> {
        let mut bytes = vec![0; bytes];
        let mut buffer = ReadBuf::new(&mut bytes);
        Pin::new(stream)
            .poll_read(context, &mut buffer)
            .map(|read| {
                read.unwrap();
                buffer.filled().len()
            })
    }

    #[tokio::test]
    async fn everything_is_counted_and_others_have_a_turn_after_so_many_bytes() {
        let (mut peer, stream) = tokio::io::duplex(4 * TURN);
        let meter = Arc::new(Meter::default());
        let mut stream = Metered::new(stream, Arc::clone(&meter));
        peer.write_all(&vec![7; 2 * TURN]).await.unwrap();

        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut next = |bytes| read(&mut stream, &mut context, bytes);
        assert_eq!(next(TURN - 1), Poll::Ready(TURN - 1));
        assert_eq!(next(1), Poll::Ready(1), "the turn is not over before");
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        assert_eq!(next(1), Poll::Pending, "though there is more");
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "or it would hang");
        assert!(!meter.is_dry());
        assert_eq!(next(TURN / 2), Poll::Ready(TURN / 2));
        assert_eq!(next(TURN), Poll::Ready(TURN / 2));
        assert_eq!(meter.received(), 2 * TURN as u64);
    }

    #[tokio::test]
    async fn a_stream_that_has_nothing_begins_its_next_turn_anew() {
        let (mut peer, stream) = tokio::io::duplex(4 * TURN);
        let meter = Arc::new(Meter::default());
        let mut stream = Metered::new(stream, Arc::clone(&meter));
        peer.write_all(&vec![7; TURN - 1]).await.unwrap();

        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        assert_eq!(read(&mut stream, &mut context, TURN), Poll::Ready(TURN - 1));
        assert_eq!(read(&mut stream, &mut context, TURN), Poll::Pending);
        assert!(meter.is_dry());
        peer.write_all(&vec![7; TURN]).await.unwrap();
        assert_eq!(read(&mut stream, &mut context, 1), Poll::Ready(1));
        assert!(!meter.is_dry());
        let rest = read(&mut stream, &mut context, TURN);
        assert_eq!(rest, Poll::Ready(TURN - 1), "one byte read, not TURN");
    }
}
