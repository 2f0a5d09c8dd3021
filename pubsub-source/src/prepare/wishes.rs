//! What a job asks of its start.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gcp_wire::SubscriptionName;

use super::PrepareError;
use crate::{
    creation::SubscriptionCreation,
    decode::DecodeFailure,
    plan::SplitPlan,
    start::{SeekId, SeekTarget},
};

/// What a job asks of its start, with everything resolved that must not be resolved twice.
#[derive(Debug, Clone)]
pub(super) struct Wishes {
    pub(super) plan: SplitPlan,
    pub(super) instance: Arc<str>,
    /// When the check began, after the Unix epoch.
    pub(super) moment: Duration,
    /// Where to seek at a first start.
    pub(super) target: Option<SeekTarget>,
    /// The name of the seek, should this be the first start.
    pub(super) fresh: SeekId,
    pub(super) creations: BTreeMap<SubscriptionName, SubscriptionCreation>,
    pub(super) decode_failure: DecodeFailure,
}

impl Wishes {
    /// Whether what cannot be decoded is given back, for the service to count and forward.
    pub(super) fn gives_back(&self) -> bool {
        match self.decode_failure {
            DecodeFailure::Nack => true,
            DecodeFailure::Fail | DecodeFailure::Drop => false,
        }
    }

    /// Checks what can be known without asking anybody.
    pub(super) fn check(&self) -> Result<(), PrepareError> {
        for (subscription, creation) in &self.creations {
            let subscription = || subscription.clone();
            if !self.plan.subscriptions().contains(&subscription()) {
                return Err(PrepareError::NotPlanned {
                    subscription: subscription(),
                });
            }
            if self.plan.is_ordered() && !creation.orders_messages() {
                return Err(PrepareError::CreationUnordered {
                    subscription: subscription(),
                });
            }
            if self.gives_back() && creation.dead_letter_topic().is_none() {
                return Err(PrepareError::CreationWithoutDeadLetters {
                    subscription: subscription(),
                });
            }
        }
        Ok(())
    }
}
