//! Counts what is in the region topics, from subscriptions of its own.

mod book;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gcp_wire::method::{ACKNOWLEDGE, PULL};
use gcp_wire::names::SubscriptionName;
use gcp_wire::proto::pubsub::{AcknowledgeRequest, PullRequest};
use gcp_wire::{Connection, Fault, RpcError};
use tokio::task::JoinSet;

use book::EmptyAnswers;
pub(crate) use book::{RegionBook, RegionTally};

use super::error::OrdersError;
use super::names::RunNames;
use super::order::Region;

/// Far above what reading to the end takes; only a server that went away needs longer.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);

/// The most messages one pull answer may carry (the service's limit).
const PULLED: i32 = 1000;

/// Either call answers within milliseconds; a server that needs longer is not there.
const DEADLINE: Duration = Duration::from_secs(10);

/// Between an empty answer and the next pull: short beside a checkpoint, long beside a call.
const PAUSE: Duration = Duration::from_millis(50);

/// A pull loop per region, which ends with the value.
#[derive(Debug)]
pub(crate) struct RegionCounter {
    book: Arc<Mutex<RegionBook>>,
    pulling: JoinSet<Result<(), OrdersError>>,
}

impl RegionCounter {
    /// Begins to count.
    pub(crate) fn start(connection: &Connection, names: &RunNames) -> Self {
        let book = Arc::new(Mutex::new(RegionBook::default()));
        let mut pulling = JoinSet::new();
        for (region, subscription) in &names.counting {
            let counting = Counting {
                connection: connection.clone(),
                region: *region,
                subscription: subscription.clone(),
                book: Arc::clone(&book),
            };
            pulling.spawn(counting.run());
        }
        Self { book, pulling }
    }

    /// What was counted so far.
    pub(crate) fn tally(&self) -> RegionTally {
        lock(&self.book).tally()
    }

    /// Asks the book something.
    pub(crate) fn read<T>(&self, ask: impl FnOnce(&RegionBook) -> T) -> T {
        ask(&lock(&self.book))
    }

    /// Waits until counting is no longer possible, and says why.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn failed(&mut self) -> OrdersError {
        match self.pulling.join_next().await {
            Some(Ok(Err(error))) => error,
            Some(Ok(Ok(())) | Err(_)) | None => OrdersError::CountingEnded,
        }
    }

    /// Goes on until every subscription has answered empty, so that what was published a moment ago
    /// is counted too. Nothing may be publishing any more.
    pub(crate) async fn drain(&mut self) -> Result<(), OrdersError> {
        let before = lock(&self.book).empty_answers();
        tokio::time::timeout(DRAIN_LIMIT, self.empty_since(&before))
            .await
            .unwrap_or(Err(OrdersError::Undrained { after: DRAIN_LIMIT }))
    }

    async fn empty_since(&mut self, before: &EmptyAnswers) -> Result<(), OrdersError> {
        let mut look = tokio::time::interval(PAUSE);
        // An answer that was under way at the call may have been empty before the last message
        // came; the second one after it was asked for later.
        while lock(&self.book).empty_answers_since(before) < 2 {
            tokio::select! {
                _ = look.tick() => {}
                error = self.failed() => return Err(error),
            }
        }
        Ok(())
    }
}

/// Entries are whole after each insertion, so a panic elsewhere leaves the book in order.
fn lock(book: &Mutex<RegionBook>) -> MutexGuard<'_, RegionBook> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The loop of one region.
struct Counting {
    connection: Connection,
    region: Region,
    subscription: SubscriptionName,
    book: Arc<Mutex<RegionBook>>,
}

impl Counting {
    async fn run(self) -> Result<(), OrdersError> {
        loop {
            match self.pull().await {
                Ok(()) => {}
                Err(error) if error.fault() == Fault::Transient => {
                    tracing::warn!(subscription = %self.subscription, %error,
                        "Counting pauses: the server cannot be reached.");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(source) => {
                    let subscription = self.subscription;
                    return Err(OrdersError::Count {
                        subscription,
                        source,
                    });
                }
            }
        }
    }

    async fn pull(&self) -> Result<(), RpcError> {
        let subscription = self.subscription.to_string();
        // A pull that waits is answered by Google's emulator at the client's deadline, and what it
        // hands to a request that was given up just then is gone until its lease ends.
        #[expect(
            deprecated,
            reason = "costs the service latency, which these emulators lack"
        )]
        let request = PullRequest {
            subscription,
            max_messages: PULLED,
            return_immediately: true,
        };
        let name = self.subscription.as_str();
        let answer = self.connection.call(&PULL, name, request, DEADLINE).await?;
        if answer.received_messages.is_empty() {
            lock(&self.book).note_empty(self.region);
            tokio::time::sleep(PAUSE).await;
            return Ok(());
        }
        let mut ack_ids = Vec::with_capacity(answer.received_messages.len());
        {
            let mut book = lock(&self.book);
            for received in answer.received_messages {
                let message = received.message.unwrap_or_default();
                book.enter(self.region, message.message_id, &message.data);
                ack_ids.push(received.ack_id);
            }
        }
        // If this fails the messages come again, and are told apart by their ids.
        let request = AcknowledgeRequest {
            subscription: name.to_owned(),
            ack_ids,
        };
        self.connection
            .call(&ACKNOWLEDGE, name, request, DEADLINE)
            .await
    }
}

#[cfg(test)]
mod tests;
