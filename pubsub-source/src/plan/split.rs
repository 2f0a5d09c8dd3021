//! One reader's part of a subscription.

use std::fmt;

use gcp_wire::SubscriptionName;

/// One reader's part of one subscription.
///
/// It carries no progress: where a subscription stands is known to the service alone, so a split
/// that another reader takes over has nothing to bring along.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Split {
    subscription: SubscriptionName,
    index: usize,
}

impl Split {
    pub(crate) fn new(subscription: SubscriptionName, index: usize) -> Self {
        Self {
            subscription,
            index,
        }
    }

    /// The subscription that is read, by its full name. A bare id never equals it.
    #[must_use]
    pub fn subscription(&self) -> &SubscriptionName {
        &self.subscription
    }

    /// The split's number in its plan, from 0.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }
}

impl From<Split> for SubscriptionName {
    fn from(split: Split) -> Self {
        split.subscription
    }
}

impl From<&Split> for SubscriptionName {
    fn from(split: &Split) -> Self {
        split.subscription.clone()
    }
}

/// The subscription's full name, `#`, and the number.
impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.subscription, self.index)
    }
}
