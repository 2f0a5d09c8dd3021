//! A failure handler whose flush can be made to fail.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{Cause, CheckpointError, FailureHandler, Receipt, Rejected, Verdict};

/// The flush of a [`FlakyHandler`] that was told to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the flush was told to fail")]
#[non_exhaustive]
pub struct FlushRefused;

#[derive(Debug, Default)]
struct Kept {
    handled: Vec<u64>,
    durable: Vec<u64>,
    fail_next: bool,
}

/// A failure handler for harnesses: it keeps what it is given until a flush makes it durable.
///
/// Clones share what they keep: one goes to the sink's builder, one stays with the harness.
///
/// ```
/// use connector_core::{FailureHandler, Rejected, RejectedReason, conformance::FlakyHandler};
///
/// let mut handler = FlakyHandler::new(|rejected: &Rejected| {
///     rejected.payload.as_ref().map_or(0, |payload| payload.len() as u64)
/// });
/// let refused = Rejected::new("a-sink", "a-topic", RejectedReason::Refused);
/// drop(handler.handle(refused.payload("seven bytes".into())));
/// handler.fail_next_flush();
/// assert!(matches!(handler.flush().try_now(), Some(Err(_))));
/// assert!(handler.durable().is_empty());
/// assert!(matches!(handler.flush().try_now(), Some(Ok(()))));
/// assert_eq!(handler.durable(), [11]);
/// ```
#[derive(Clone)]
pub struct FlakyHandler {
    number: Arc<dyn Fn(&Rejected) -> u64 + Send + Sync>,
    kept: Arc<Mutex<Kept>>,
}

impl FlakyHandler {
    /// A handler that reads a record's number out of its rejection with `number`.
    pub fn new(number: impl Fn(&Rejected) -> u64 + Send + Sync + 'static) -> Self {
        Self {
            number: Arc::new(number),
            kept: Arc::default(),
        }
    }

    /// What a flush has made durable, in the order in which it was handled.
    #[must_use]
    pub fn durable(&self) -> Vec<u64> {
        self.kept().durable.clone()
    }

    /// Makes the next flush fail. What it should have covered stays owed to the one after.
    pub fn fail_next_flush(&self) {
        self.kept().fail_next = true;
    }

    // Three plain fields, each valid whatever the others are: a panic elsewhere spoils nothing.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailureHandler for FlakyHandler {
    fn handle(&mut self, rejected: Rejected) -> Receipt<Verdict> {
        let number = (self.number)(&rejected);
        self.kept().handled.push(number);
        Receipt::ready(Verdict::Drop)
    }

    fn flush(&mut self) -> Receipt<()> {
        let mut kept = self.kept();
        if std::mem::take(&mut kept.fail_next) {
            return Receipt::failed(CheckpointError::Handler {
                cause: Cause::new(FlushRefused),
            });
        }
        let mut handled = std::mem::take(&mut kept.handled);
        kept.durable.append(&mut handled);
        Receipt::ready(())
    }
}

impl fmt::Debug for FlakyHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FlakyHandler").field(&*self.kept()).finish()
    }
}
