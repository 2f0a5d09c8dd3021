//! Room in every sink first, then a message.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use futures::Stream;

use crate::Cause;

/// A sink's answer to "may one more record come?".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Room {
    /// The next `start_send` will not fail for lack of room.
    Ready,
    /// There is room, but the stage is half full: take a checkpoint now, or it will fill up. Told
    /// once per open epoch, and again when an abort gives the open epoch more items.
    CheckpointWanted,
}

/// A sink that tells, apart from its record type, whether it has room.
pub trait Admission {
    /// The sink's error.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Waits until there is room. Pending only while something that the sink's *driver* does will
    /// make room, never while only a checkpoint of the host would.
    ///
    /// Keeps the waker when it answers [`Room::Ready`] too, and wakes it when the sink ends:
    /// [`next_when`] then goes on to wait for its source, and a sink whose outage ends it while the
    /// source is idle would otherwise be noticed only with the next message or tick.
    ///
    /// # Errors
    ///
    /// The sink's terminal error.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<Room, Self::Error>>;
}

impl<S: Admission + ?Sized> Admission for &mut S {
    type Error = S::Error;

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<Room, Self::Error>> {
        (**self).poll_room(cx)
    }
}

impl<S: Admission + ?Sized> Admission for Box<S> {
    type Error = S::Error;

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<Room, Self::Error>> {
        (**self).poll_room(cx)
    }
}

/// One sink, or a tuple of up to six.
pub trait Sinks {
    /// Waits until every sink has room; a wish for a checkpoint comes out at once.
    ///
    /// # Errors
    ///
    /// The first sink's terminal error.
    fn poll_room_in_all(&mut self, cx: &mut Context<'_>) -> Poll<Result<Room, StepError>>;
}

impl<S: Admission> Sinks for S {
    fn poll_room_in_all(&mut self, cx: &mut Context<'_>) -> Poll<Result<Room, StepError>> {
        self.poll_room(cx).map_err(|error| StepError::Sink {
            index: 0,
            cause: Cause::new(error),
        })
    }
}

macro_rules! sinks_of_a_tuple {
    ($($sink:ident $index:tt),+) => {
        impl<$($sink: Admission),+> Sinks for ($(&mut $sink,)+) {
            fn poll_room_in_all(
                &mut self,
                cx: &mut Context<'_>,
            ) -> Poll<Result<Room, StepError>> {
                let mut pending = false;
                // A sink without room does not hide the others: whichever changes first wakes us.
                $(match self.$index.poll_room(cx) {
                    Poll::Ready(Ok(Room::Ready)) => {}
                    Poll::Ready(Ok(Room::CheckpointWanted)) => {
                        return Poll::Ready(Ok(Room::CheckpointWanted));
                    }
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(Err(StepError::Sink {
                            index: $index,
                            cause: Cause::new(error),
                        }));
                    }
                    Poll::Pending => pending = true,
                })+
                if pending { Poll::Pending } else { Poll::Ready(Ok(Room::Ready)) }
            }
        }
    };
}

sinks_of_a_tuple!(A 0, B 1);
sinks_of_a_tuple!(A 0, B 1, C 2);
sinks_of_a_tuple!(A 0, B 1, C 2, D 3);
sinks_of_a_tuple!(A 0, B 1, C 2, D 3, E 4);
sinks_of_a_tuple!(A 0, B 1, C 2, D 3, E 4, F 5);

/// What the host does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a host's loop has to answer every step there is"
)]
pub enum Next<R> {
    /// Handle this record and give the results to the sinks, without an await in between (H1).
    Record(R),
    /// Take a checkpoint now.
    CheckpointWanted,
    /// The source has ended.
    End,
}

/// Which connector ended the loop.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The source ended with an error.
    #[error(
        "the source ended; nothing uncommitted was acknowledged, rebuild from the last saved state"
    )]
    Source {
        /// The source's error.
        #[source]
        cause: Cause,
    },
    /// A sink ended with an error.
    #[error(
        "sink {index} ended; what it had not confirmed is owed, rebuild from the last saved state"
    )]
    Sink {
        /// The position of the sink in the tuple, from 0.
        index: usize,
        /// The sink's error.
        #[source]
        cause: Cause,
    },
}

/// Waits for room in every sink, then for a message.
///
/// A message is taken out only when every sink has room, so the host can hand its results over
/// without waiting, and at no cut does it hold a record that no sink has accepted (H1).
///
/// The sinks are asked again whenever the source wakes it, and a sink that ends wakes it too (see
/// [`Admission::poll_room`]): an idle source hides no failed sink.
///
/// # Errors
///
/// The terminal error of the source or of a sink.
///
/// # Cancel safety
///
/// Dropping the future, as `select!` does, loses nothing: a message leaves the source only together
/// with the future's output.
pub async fn next_when<S, M, E, K>(source: &mut S, mut sinks: K) -> Result<Next<M>, StepError>
where
    S: Stream<Item = Result<M, E>> + Unpin,
    E: std::error::Error + Send + Sync + 'static,
    K: Sinks,
{
    poll_fn(|cx| {
        match sinks.poll_room_in_all(cx) {
            Poll::Ready(Ok(Room::Ready)) => {}
            Poll::Ready(Ok(Room::CheckpointWanted)) => {
                return Poll::Ready(Ok(Next::CheckpointWanted));
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
        Pin::new(&mut *source).poll_next(cx).map(|item| match item {
            Some(Ok(message)) => Ok(Next::Record(message)),
            Some(Err(error)) => Err(StepError::Source {
                cause: Cause::new(error),
            }),
            None => Ok(Next::End),
        })
    })
    .await
}
