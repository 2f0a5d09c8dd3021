//! The steps that the clauses are made of.

use std::{fmt, future::Future};

use futures::{Sink, SinkExt, StreamExt};
use serde::{Serialize, de::DeserializeOwned};

use super::{Clause, Harness, SinkHarness, SourceHarness, Violation};
use crate::{Checkpoint, CheckpointError, Epoch, Receipt, Restored};

pub(super) const COMMITS: &str = "the receipt of a commit resolves";

/// How often the outside is looked at before what should be there is missed.
const PATIENCE: usize = 20;

/// A state as a host keeps it: bytes.
///
/// Every restore of the suite goes through them, so a state that only lives in memory is found.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    epoch: Epoch,
    bytes: Vec<u8>,
    clause: Clause,
}

impl Kept {
    pub(super) fn restored<S: DeserializeOwned>(&self) -> Result<Restored<S>, Violation> {
        match serde_json::from_slice(&self.bytes) {
            Ok(state) => Ok(Restored::new(self.epoch, state)),
            Err(error) => Err(Check(self.clause).violation(
                "a state that was written can be read again",
                error.to_string(),
            )),
        }
    }
}

/// The steps of one clause, which every violation they meet cites.
#[derive(Debug, Clone, Copy)]
pub(super) struct Check(pub(super) Clause);

impl Check {
    pub(super) fn violation(self, claim: &'static str, seen: impl Into<String>) -> Violation {
        Violation {
            clause: self.0,
            claim,
            seen: seen.into(),
        }
    }

    pub(super) fn that(
        self,
        holds: bool,
        claim: &'static str,
        seen: impl fmt::Debug,
    ) -> Result<(), Violation> {
        if holds {
            Ok(())
        } else {
            Err(self.violation(claim, format!("{seen:?}")))
        }
    }

    /// Waits for something that must come.
    pub(super) async fn wait<H: Harness, F: Future>(
        self,
        harness: &mut H,
        future: F,
        claim: &'static str,
    ) -> Result<F::Output, Violation> {
        let output = harness.bounded(future).await;
        output.ok_or_else(|| self.violation(claim, "nothing within the harness's bound"))
    }

    /// Waits for a receipt that must be Ok.
    pub(super) async fn ok<H: Harness, T>(
        self,
        harness: &mut H,
        receipt: Receipt<T>,
        claim: &'static str,
    ) -> Result<T, Violation> {
        self.wait(harness, receipt, claim)
            .await?
            .map_err(|error| self.violation(claim, error.to_string()))
    }

    /// Waits for a snapshot's receipt, which must be Ok, and writes its state down.
    pub(super) async fn saved<H: Harness, S: Serialize>(
        self,
        harness: &mut H,
        epoch: u64,
        receipt: Receipt<S>,
    ) -> Result<Kept, Violation> {
        let state = self
            .ok(
                harness,
                receipt,
                "a snapshot's receipt resolves to its state",
            )
            .await?;
        let bytes = serde_json::to_vec(&state)
            .map_err(|error| self.violation("a state can be written", error.to_string()))?;
        Ok(Kept {
            epoch: Epoch::new(epoch),
            bytes,
            clause: self.0,
        })
    }

    /// Seals an epoch, whose receipt must be Ok, and writes its state down.
    pub(super) async fn seal<H: Harness>(
        self,
        harness: &mut H,
        connector: &mut H::Connector,
        epoch: u64,
    ) -> Result<Kept, Violation> {
        let receipt = connector.snapshot(Epoch::new(epoch));
        self.saved(harness, epoch, receipt).await
    }

    /// Commits with a healthy service, and checks how many items that settles.
    pub(super) async fn commit<H: Harness>(
        self,
        harness: &mut H,
        connector: &mut H::Connector,
        epoch: u64,
        settles: usize,
    ) -> Result<(), Violation> {
        let receipt = connector.commit(Epoch::new(epoch));
        let committed = self.ok(harness, receipt, COMMITS).await?;
        self.that(
            committed.total() == settles && committed.retained == 0,
            "a commit counts exactly the items it settles",
            committed,
        )
    }

    /// Waits for a receipt that must fail, in the way that `is` knows.
    pub(super) async fn fails<H: Harness, T>(
        self,
        harness: &mut H,
        receipt: Receipt<T>,
        claim: &'static str,
        is: impl FnOnce(&CheckpointError) -> bool,
    ) -> Result<(), Violation> {
        match self.wait(harness, receipt, claim).await? {
            Ok(_) => Err(self.violation(claim, "the receipt was Ok")),
            Err(error) => self.that(is(&error), claim, error),
        }
    }

    /// Checks that a receipt has not resolved.
    pub(super) fn pending<T>(
        self,
        receipt: &mut Receipt<T>,
        claim: &'static str,
    ) -> Result<(), Violation> {
        match receipt.try_now() {
            None => Ok(()),
            Some(Ok(_)) => Err(self.violation(claim, "the receipt was Ok already")),
            Some(Err(error)) => {
                Err(self.violation(claim, format!("the receipt had failed: {error}")))
            }
        }
    }

    /// Gives the connector time and checks that exactly `expected` is outside, each once.
    pub(super) async fn stays<H: Harness>(
        self,
        harness: &mut H,
        expected: &[u64],
        claim: &'static str,
    ) -> Result<(), Violation> {
        harness.let_time_pass().await;
        let seen = sorted(harness.outside().await);
        self.that(seen == sorted(expected.to_vec()), claim, seen)
    }

    /// Gives the connector as much time as it can ask for until exactly `expected` is outside.
    pub(super) async fn eventually<H: Harness>(
        self,
        harness: &mut H,
        expected: &[u64],
        claim: &'static str,
    ) -> Result<(), Violation> {
        let expected = sorted(expected.to_vec());
        for _ in 0..PATIENCE {
            if sorted(harness.outside().await) == expected {
                break;
            }
            harness.let_time_pass().await;
        }
        self.stays(harness, &expected, claim).await
    }

    /// Reads `count` records, which must come.
    pub(super) async fn read<H: SourceHarness>(
        self,
        harness: &mut H,
        source: &mut H::Connector,
        count: usize,
    ) -> Result<Vec<u64>, Violation> {
        const CLAIM: &str = "what was published is handed out";
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count {
            match self.wait(harness, source.next(), CLAIM).await? {
                Some(Ok(message)) => numbers.push(H::number(&message)),
                Some(Err(error)) => return Err(self.violation(CLAIM, error.to_string())),
                None => return Err(self.violation(CLAIM, "the source ended")),
            }
        }
        Ok(numbers)
    }

    /// Polls a source for as long as the harness bounds, and checks that nothing comes out.
    pub(super) async fn nothing_comes<H: SourceHarness>(
        self,
        harness: &mut H,
        source: &mut H::Connector,
        claim: &'static str,
    ) -> Result<(), Violation> {
        match harness.bounded(source.next()).await {
            None => Ok(()),
            Some(Some(Ok(message))) => {
                Err(self.violation(claim, format!("record {}", H::number(&message))))
            }
            Some(Some(Err(error))) => Err(self.violation(claim, error.to_string())),
            Some(None) => Err(self.violation(claim, "the source ended")),
        }
    }

    /// Gives a record to a sink, which must take it.
    pub(super) async fn feed<H: SinkHarness>(
        self,
        harness: &mut H,
        sink: &mut H::Connector,
        number: u64,
    ) -> Result<(), Violation> {
        let record = harness.record(number);
        self.give(harness, sink, record).await
    }

    /// Gives a record to a sink that its failure handler will get.
    pub(super) async fn feed_refused<H: SinkHarness>(
        self,
        harness: &mut H,
        sink: &mut H::Connector,
        number: u64,
    ) -> Result<(), Violation> {
        let record = harness.refused(number);
        self.give(harness, sink, record).await
    }

    async fn give<H: SinkHarness>(
        self,
        harness: &mut H,
        sink: &mut H::Connector,
        record: H::Record,
    ) -> Result<(), Violation> {
        const CLAIM: &str = "a sink with room takes a record";
        self.wait(harness, sink.feed(record), CLAIM)
            .await?
            .map_err(|error| self.violation(CLAIM, error.to_string()))
    }

    /// Gives a record to a sink whose service is broken, and waits until the sink says so.
    pub(super) async fn ends<H: SinkHarness>(
        self,
        harness: &mut H,
        sink: &mut H::Connector,
        number: u64,
        claim: &'static str,
    ) -> Result<(), Violation> {
        let record = harness.record(number);
        let outcome = self.wait(harness, send(sink, record), claim).await?;
        self.that(outcome.is_err(), claim, "the record was taken and flushed")
    }
}

async fn send<S, R>(sink: &mut S, record: R) -> Result<(), S::Error>
where
    S: Sink<R> + Unpin,
{
    sink.feed(record).await?;
    sink.flush().await
}

pub(super) fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}

pub(super) fn is_out_of_order(error: &CheckpointError) -> bool {
    matches!(error, CheckpointError::OutOfOrder { .. })
}

pub(super) fn is_unknown(error: &CheckpointError) -> bool {
    matches!(error, CheckpointError::Unknown { .. })
}

pub(super) fn is_aborted(error: &CheckpointError) -> bool {
    matches!(error, CheckpointError::Aborted { .. })
}

pub(super) fn is_closed(error: &CheckpointError) -> bool {
    matches!(error, CheckpointError::Closed { .. })
}
