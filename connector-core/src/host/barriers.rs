//! Cuts that travel with the records.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures::{Stream, stream::FusedStream};
use pin_project::pin_project;

use crate::{Checkpoint, Committed, Epoch, Receipt};

/// What comes out of a source [`with_barriers`](BarrierExt::with_barriers).
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a host's loop has to answer every event there is"
)]
pub enum Event<R, S> {
    /// A record of the open epoch.
    Record(R),
    /// The cut of an epoch: every record before it belongs to the epoch, every record after it to
    /// a later one. The receipt gives the source's state.
    Barrier(Epoch, Receipt<S>),
}

impl<R, S> Event<R, S> {
    /// Applies `f` to the record, and leaves a barrier alone.
    pub fn map_record<T>(self, f: impl FnOnce(R) -> T) -> Event<T, S> {
        match self {
            Self::Record(record) => Event::Record(f(record)),
            Self::Barrier(epoch, receipt) => Event::Barrier(epoch, receipt),
        }
    }
}

/// Adds [`with_barriers`](Self::with_barriers) to every source.
pub trait BarrierExt: Checkpoint + Stream + Sized {
    /// Makes the source's cuts part of its stream.
    ///
    /// A cut is made where the source is polled. A host that keeps records in between (a channel,
    /// `buffered`, a worker pool that keeps the order) and cuts the source from its loop would save
    /// an epoch whose last records still sit in that queue, and lose them in a crash. With the
    /// barrier in the stream, whatever keeps the order of the records keeps the cut in its place:
    /// the host takes its sinks' snapshots when the barrier *arrives*.
    ///
    /// Each item of `every` asks for a barrier, and is looked at before the source is: an interval,
    /// merged with whatever else may want a checkpoint (a sink's
    /// [`CheckpointWanted`](super::Room::CheckpointWanted)). When it ends no further barriers are
    /// asked for. `next_epoch` answers the number of the next epoch. When the source ends, a last
    /// barrier comes before the end, so that a host's loop needs no special last checkpoint; after
    /// an error none comes.
    ///
    /// Epochs are committed through [`WithBarriers::checkpoints`], which also gives the source back at
    /// the end.
    ///
    /// ```
    /// use connector_core::{Checkpoint, CheckpointError, Epoch, host::{BarrierExt, Event}};
    /// use futures::{Stream, StreamExt};
    ///
    /// async fn run<S, M, E>(source: S, every: impl Stream) -> Result<(), E>
    /// where
    ///     S: Stream<Item = Result<M, E>> + Checkpoint + Unpin,
    ///     E: From<CheckpointError>,
    /// {
    ///     let mut epoch = Epoch::default();
    ///     let next_epoch = move || {
    ///         epoch = epoch.next();
    ///         epoch
    ///     };
    ///     let barriers = source.with_barriers(every, next_epoch);
    ///     let checkpoints = barriers.checkpoints();
    ///     // Up to 64 records are enriched at a time; `buffered` keeps their order, and so the cuts.
    ///     let enriched = barriers.map(|event| async { event }).buffered(64);
    ///     let mut events = std::pin::pin!(enriched);
    ///     while let Some(event) = events.next().await {
    ///         match event? {
    ///             Event::Record(_record) => { /* into the sinks */ }
    ///             Event::Barrier(epoch, receipt) => {
    ///                 // The sinks' snapshots are taken here, before anything is awaited.
    ///                 let _state = receipt.await?;
    ///                 // Save, then:
    ///                 drop(checkpoints.commit(epoch));
    ///             }
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    fn with_barriers<T, F>(self, every: T, next_epoch: F) -> WithBarriers<Self, T, F>
    where
        T: Stream,
        F: FnMut() -> Epoch,
    {
        WithBarriers {
            source: Arc::new(Mutex::new(self)),
            ticks: every,
            ticking: true,
            next_epoch,
            end: End::NotYet,
        }
    }
}

impl<S: Checkpoint + Stream> BarrierExt for S {}

/// The stream of [`BarrierExt::with_barriers`].
#[pin_project]
#[must_use = "streams do nothing unless polled"]
pub struct WithBarriers<S, T, F> {
    source: Arc<Mutex<S>>,
    #[pin]
    ticks: T,
    ticking: bool,
    next_epoch: F,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    NotYet,
    /// An error came out; no barrier will vouch for anything any more.
    Failed,
    Reached,
}

impl<S, T, F> WithBarriers<S, T, F> {
    /// A handle to commit and abort what the barriers cut.
    ///
    /// The stream usually disappears in a chain of combinators; the handle stays with the host.
    #[must_use]
    pub fn checkpoints(&self) -> Checkpoints<S> {
        Checkpoints(Arc::clone(&self.source))
    }
}

impl<S, T, F, M, E> Stream for WithBarriers<S, T, F>
where
    S: Checkpoint + Stream<Item = Result<M, E>> + Unpin,
    T: Stream,
    F: FnMut() -> Epoch,
{
    type Item = Result<Event<M, S::State>, E>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        if *this.end == End::Reached {
            return Poll::Ready(None);
        }
        let mut source = lock(this.source);
        let mut barrier = |source: &mut S| {
            let epoch = (this.next_epoch)();
            Poll::Ready(Some(Ok(Event::Barrier(epoch, source.snapshot(epoch)))))
        };
        if *this.ticking && *this.end == End::NotYet {
            match this.ticks.poll_next(cx) {
                Poll::Ready(Some(_)) => return barrier(&mut source),
                // Not polled again: a stream may panic after its end.
                Poll::Ready(None) => *this.ticking = false,
                Poll::Pending => {}
            }
        }
        match Pin::new(&mut *source).poll_next(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(record))) => Poll::Ready(Some(Ok(Event::Record(record)))),
            Poll::Ready(Some(Err(error))) => {
                *this.end = End::Failed;
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(None) => {
                let failed = *this.end == End::Failed;
                *this.end = End::Reached;
                if failed {
                    Poll::Ready(None)
                } else {
                    barrier(&mut source)
                }
            }
        }
    }
}

impl<S, T, F, M, E> FusedStream for WithBarriers<S, T, F>
where
    S: Checkpoint + Stream<Item = Result<M, E>> + Unpin,
    T: Stream,
    F: FnMut() -> Epoch,
{
    fn is_terminated(&self) -> bool {
        self.end == End::Reached
    }
}

impl<S, T, F> fmt::Debug for WithBarriers<S, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithBarriers")
            .field("ticking", &self.ticking)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// Commits and aborts the epochs of a source [`with_barriers`](BarrierExt::with_barriers).
///
/// Has no `snapshot`: a cut beside the stream would not be where its barrier is. Keeps the source
/// alive; drop it, and the stream, to give back what the source holds.
pub struct Checkpoints<S>(Arc<Mutex<S>>);

impl<S: Checkpoint> Checkpoints<S> {
    /// Tells the source that `epoch` is durable. As [`Checkpoint::commit`].
    ///
    /// # Errors
    ///
    /// The receipt fails as that of [`Checkpoint::commit`].
    ///
    /// # Cancel safety
    ///
    /// The work belongs to the call; dropping the receipt changes nothing but what is learnt.
    pub fn commit(&self, epoch: Epoch) -> Receipt<Committed> {
        lock(&self.0).commit(epoch)
    }

    /// Tells the source that `epoch` will never be durable. As [`Checkpoint::abort`].
    pub fn abort(&self, epoch: Epoch) {
        lock(&self.0).abort(epoch);
    }
}

impl<S> Checkpoints<S> {
    /// The source, once its stream and every other handle are gone: to close it.
    ///
    /// # Errors
    ///
    /// Gives the handle back while something else still has the source.
    pub fn into_source(self) -> Result<S, Self> {
        let source = Arc::try_unwrap(self.0).map_err(Self)?;
        Ok(source.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S> Clone for Checkpoints<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Checkpoints<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checkpoints").finish_non_exhaustive()
    }
}

// Held for the length of one call and never over an await. A source that panicked in a call knows
// by itself whether it can go on, so its panic is not repeated here.
fn lock<S>(source: &Mutex<S>) -> MutexGuard<'_, S> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}
