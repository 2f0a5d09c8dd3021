//! Which reader of a job reads which subscription.

mod split;
#[cfg(test)]
mod tests;

pub use split::Split;

use std::collections::BTreeSet;

use gcp_wire::SubscriptionName;

/// How the subscriptions of a job are spread over its readers.
///
/// A pure function of the subscriptions, in their order, and of the number of readers. It is never
/// saved: each start makes it anew, so that a job may come back with more or fewer readers, and
/// nobody has to keep account of who had what.
///
/// ```
/// use pubsub_source::SplitPlan;
/// let orders = "projects/shop/subscriptions/orders".parse()?;
/// let refunds = "projects/shop/subscriptions/refunds".parse()?;
/// let plan = SplitPlan::new([orders, refunds], 4)?;
/// let read: Vec<String> = plan.splits().map(|split| split.to_string()).collect();
/// assert_eq!(read, [
///     "projects/shop/subscriptions/orders#0",
///     "projects/shop/subscriptions/refunds#1",
///     "projects/shop/subscriptions/orders#2",
///     "projects/shop/subscriptions/refunds#3",
/// ]);
/// assert_eq!(plan.reader(3)?[0].subscription().id(), "refunds");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitPlan {
    subscriptions: Vec<SubscriptionName>,
    readers: usize,
    ordered: bool,
}

impl SplitPlan {
    /// A plan by which every reader has something to read: there are as many splits as
    /// subscriptions, or as readers where those are more.
    ///
    /// Split `i` reads subscription `i` modulo their number, and belongs to reader `i` modulo
    /// `readers`. A subscription with several splits is shared: the service gives each message to
    /// one of them.
    ///
    /// # Errors
    ///
    /// [`PlanError::NoSubscription`], [`PlanError::NoReader`], or [`PlanError::Twice`].
    pub fn new(
        subscriptions: impl IntoIterator<Item = SubscriptionName>,
        readers: usize,
    ) -> Result<Self, PlanError> {
        Self::of(subscriptions.into_iter().collect(), readers, false)
    }

    /// A plan that keeps the order of each ordering key: one split per subscription, since two
    /// readers of a subscription would each get a part of a key's messages.
    ///
    /// Readers beyond the number of subscriptions have nothing to read, see
    /// [`idle_readers`](Self::idle_readers).
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn ordered(
        subscriptions: impl IntoIterator<Item = SubscriptionName>,
        readers: usize,
    ) -> Result<Self, PlanError> {
        Self::of(subscriptions.into_iter().collect(), readers, true)
    }

    fn of(
        subscriptions: Vec<SubscriptionName>,
        readers: usize,
        ordered: bool,
    ) -> Result<Self, PlanError> {
        if subscriptions.is_empty() {
            return Err(PlanError::NoSubscription);
        }
        if readers == 0 {
            return Err(PlanError::NoReader);
        }
        let mut there = BTreeSet::new();
        if let Some(twice) = subscriptions.iter().find(|name| !there.insert(*name)) {
            return Err(PlanError::Twice {
                subscription: twice.clone(),
            });
        }
        Ok(Self {
            subscriptions,
            readers,
            ordered,
        })
    }

    /// The same subscriptions for another number of readers.
    ///
    /// # Errors
    ///
    /// [`PlanError::NoReader`].
    pub fn resized(&self, readers: usize) -> Result<Self, PlanError> {
        Self::of(self.subscriptions.clone(), readers, self.ordered)
    }

    /// The subscriptions, in the order in which they were given.
    #[must_use]
    pub fn subscriptions(&self) -> &[SubscriptionName] {
        &self.subscriptions
    }

    /// The number of readers.
    #[must_use]
    pub const fn readers(&self) -> usize {
        self.readers
    }

    /// Whether each ordering key's order is kept.
    #[must_use]
    pub const fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// The number of splits.
    #[must_use]
    pub fn split_count(&self) -> usize {
        if self.ordered {
            self.subscriptions.len()
        } else {
            self.subscriptions.len().max(self.readers)
        }
    }

    /// How many readers have nothing to read. Only an [`ordered`](Self::ordered) plan has such: run
    /// fewer readers, or use more subscriptions.
    #[must_use]
    pub fn idle_readers(&self) -> usize {
        self.readers.saturating_sub(self.split_count())
    }

    /// All splits, by index.
    pub fn splits(&self) -> impl Iterator<Item = Split> + '_ {
        (0..self.split_count()).map(|index| self.split(index))
    }

    /// What reader `reader` reads, counted from 0: never one subscription twice, and nothing if it
    /// is idle.
    ///
    /// # Errors
    ///
    /// [`PlanError::NoSuchReader`] for a number that is not below [`readers`](Self::readers).
    pub fn reader(&self, reader: usize) -> Result<Vec<Split>, PlanError> {
        if reader >= self.readers {
            return Err(PlanError::NoSuchReader {
                reader,
                readers: self.readers,
            });
        }
        let indexes = (reader..self.split_count()).step_by(self.readers);
        Ok(indexes.map(|index| self.split(index)).collect())
    }

    fn split(&self, index: usize) -> Split {
        let subscription = self.subscriptions[index % self.subscriptions.len()].clone();
        Split::new(subscription, index)
    }
}

/// Why there is no such plan. Nothing was asked of the service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There is nothing to read.
    #[error("a plan without a subscription reads nothing; name at least one")]
    NoSubscription,
    /// There is nobody to read.
    #[error("a plan without a reader reads nothing; plan for at least one")]
    NoReader,
    /// A subscription is named twice.
    #[error(
        "subscription {subscription} is named twice; name it once, and plan for more readers to read it in parallel"
    )]
    Twice {
        /// The subscription.
        subscription: SubscriptionName,
    },
    /// The reader is not one of those planned for.
    #[error("there is no reader {reader} among {readers}; they are counted from 0")]
    NoSuchReader {
        /// The number of the reader.
        reader: usize,
        /// How many there are.
        readers: usize,
    },
}
