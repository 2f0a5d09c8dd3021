//! The outcome of work that has already begun.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use futures::{channel::oneshot, future::FusedFuture};

use super::CheckpointError;

/// The outcome of work the connector has already begun.
///
/// Owns what it needs, so it can be stored, sent to another task, awaited late or dropped: dropping
/// it changes nothing but what the host learns. Hosts without an executor use
/// [`try_now`](Self::try_now).
///
/// # Cancel safety
///
/// Awaiting `&mut receipt` in a `select!` loses nothing when another branch wins.
///
/// # Panics
///
/// Polling a receipt again after it gave its outcome panics, as for any future;
/// [`FusedFuture::is_terminated`] tells.
#[must_use = "the work goes on without its receipt, but whether it succeeded is then never known"]
pub struct Receipt<T>(State<T>);

enum State<T> {
    Ready(Result<T, CheckpointError>),
    Told(oneshot::Receiver<Result<T, CheckpointError>>),
    Pending(Pin<Box<dyn Future<Output = Result<T, CheckpointError>> + Send + 'static>>),
    Given,
}

impl<T> Receipt<T> {
    /// A receipt that is ready at once.
    pub const fn ready(value: T) -> Self {
        Self(State::Ready(Ok(value)))
    }

    /// A receipt that has failed already.
    pub const fn failed(error: CheckpointError) -> Self {
        Self(State::Ready(Err(error)))
    }

    /// A receipt that resolves when `future` does.
    pub fn pending<F>(future: F) -> Self
    where
        F: Future<Output = Result<T, CheckpointError>> + Send + 'static,
    {
        Self(State::Pending(Box::pin(future)))
    }

    /// A receipt and the value that resolves it.
    ///
    /// A [`Resolver`] that is dropped unused resolves the receipt to
    /// [`CheckpointError::Closed`]: a connector that is gone is never mistaken for a slow one.
    pub fn channel() -> (Resolver<T>, Self) {
        let (sender, receiver) = oneshot::channel();
        (Resolver(sender), Self(State::Told(receiver)))
    }

    /// Applies `f` to the value when there is one.
    pub fn map<U, F>(self, f: F) -> Receipt<U>
    where
        F: FnOnce(T) -> U + Send + 'static,
        T: Send + 'static,
    {
        match self.0 {
            State::Ready(outcome) => Receipt(State::Ready(outcome.map(f))),
            State::Given => Receipt(State::Given),
            state @ (State::Told(_) | State::Pending(_)) => {
                let rest = Self(state);
                Receipt::pending(async move { rest.await.map(f) })
            }
        }
    }
}

impl<T> Receipt<T> {
    /// The outcome, if it is there already.
    ///
    /// For hosts without an executor: calls the receipt once without arranging to be woken. `None`
    /// both while the outcome is not there and after it was given.
    pub fn try_now(&mut self) -> Option<Result<T, CheckpointError>> {
        if matches!(self.0, State::Given) {
            return None;
        }
        match Pin::new(self).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }
}

// Nothing inside is pinned structurally: the boxed future is pinned by its box.
impl<T> Unpin for Receipt<T> {}

impl<T> Future for Receipt<T> {
    type Output = Result<T, CheckpointError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.0 {
            State::Ready(_) => {
                let State::Ready(outcome) = std::mem::replace(&mut self.0, State::Given) else {
                    unreachable!("matched above");
                };
                return Poll::Ready(outcome);
            }
            State::Told(receiver) => match Pin::new(receiver).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(outcome)) => outcome,
                Poll::Ready(Err(oneshot::Canceled)) => Err(CheckpointError::driver_gone()),
            },
            State::Pending(future) => match future.as_mut().poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(outcome) => outcome,
            },
            State::Given => panic!("a receipt was polled after it gave its outcome"),
        };
        self.0 = State::Given;
        Poll::Ready(outcome)
    }
}

impl<T> FusedFuture for Receipt<T> {
    fn is_terminated(&self) -> bool {
        matches!(self.0, State::Given)
    }
}

impl<T> fmt::Debug for Receipt<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            State::Ready(Ok(_)) => "ready",
            State::Ready(Err(_)) => "failed",
            State::Told(_) | State::Pending(_) => "pending",
            State::Given => "given",
        };
        f.debug_tuple("Receipt").field(&state).finish()
    }
}

/// The other end of [`Receipt::channel`].
#[must_use = "a resolver that is dropped tells its receipt that the connector is gone"]
pub struct Resolver<T>(oneshot::Sender<Result<T, CheckpointError>>);

impl<T> Resolver<T> {
    /// Resolves the receipt. A receipt that was dropped does not mind.
    pub fn resolve(self, outcome: Result<T, CheckpointError>) {
        // The host may have dropped its receipt, which by contract changes nothing.
        drop(self.0.send(outcome));
    }

    /// Whether the receipt was dropped, so that nobody will learn the outcome.
    #[must_use]
    pub fn is_orphaned(&self) -> bool {
        self.0.is_canceled()
    }
}

impl<T> fmt::Debug for Resolver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("orphaned", &self.is_orphaned())
            .finish()
    }
}
