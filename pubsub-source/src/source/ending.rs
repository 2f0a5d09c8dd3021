//! How a source comes to its end.

use std::time::Duration;

use futures::future::join_all;

use super::{PubsubSource, joining::last_word};
use crate::{
    error::{SourceError, driver_gone},
    split::SplitReader,
};

/// How much longer than its budget a close may take before the driver counts as gone.
const GRACE: Duration = Duration::from_secs(1);

impl PubsubSource {
    /// Fetches nothing more: the stream ends once what was fetched has been handed out.
    ///
    /// For a host that stops in good order: it goes on until the stream ends, takes a last
    /// checkpoint, commits it, awaits the receipt and [closes](Self::close) the source. Checkpoints
    /// work as before after the end. What the service still sends, and what is fetched of a paused
    /// subscription, is given back for others to have. A host that wants none of what is fetched
    /// closes the source instead, which gives it back.
    pub fn stop(&mut self) {
        self.splits.iter_mut().for_each(SplitReader::stop);
    }

    /// Ends the source: finishes what was committed, and gives everything else back, so that
    /// another subscriber gets it at once.
    ///
    /// Takes at most `close_budget`, 5 s by default, for all subscriptions together. Giving back
    /// counts as a delivery attempt on a subscription with a dead-letter policy. After this the
    /// stream ends, and every call answers `Closed`.
    ///
    /// # Errors
    ///
    /// [`SourceError::CloseTimedOut`] when something was not confirmed in time, and the source's
    /// terminal error if the stream did not give it before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop the closing.
    pub async fn close(&mut self) -> Result<(), SourceError> {
        self.splits.iter_mut().for_each(SplitReader::close);
        let ends: Vec<_> = self.splits.iter().map(SplitReader::driver_ended).collect();
        let ends = ends.into_iter().map(|mut ended| async move {
            // The sender lives in what the handle shares with its driver.
            drop(ended.wait_for(|ended| *ended).await);
        });
        let limit = self.close_budget.saturating_add(GRACE);
        let waited = tokio::time::timeout(limit, join_all(ends)).await;
        self.ended = true;
        match (last_word(&mut self.splits), waited) {
            (Some(error), _) => Err(error),
            (None, Ok(_)) => Ok(()),
            (None, Err(_)) => Err(SourceError::DriverGone {
                cause: driver_gone(),
            }),
        }
    }
}
