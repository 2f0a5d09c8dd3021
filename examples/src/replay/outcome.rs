//! What became of an element that was driven again.

use cloudtasks_sink::Submitted;
use connector_core::{Cause, Receipt, RejectedReason};
use futures::{FutureExt, future::BoxFuture};
use pubsub_sink::Published;

use super::ReplayError;

/// What became of an element.
pub(super) enum Outcome {
    Published,
    Created,
    Refused(RefusedAgain),
}

/// Why an element did not arrive this time either. Its letter stays in the subscription.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefusedAgain {
    /// Its sink rejected it once more.
    #[error("its sink rejected it once more ({reason:?})")]
    Rejected {
        /// Which rule it broke.
        reason: RejectedReason,
        /// What the check or the service said.
        #[source]
        cause: Option<Cause>,
    },
    /// Its sink did not take it.
    #[error("its sink did not take it")]
    NotTaken,
}

/// An outcome that is not known yet.
pub(super) type Awaited = BoxFuture<'static, Result<Outcome, ReplayError>>;

pub(super) fn published(receipt: Receipt<Published>) -> Awaited {
    let outcome = async {
        Ok(match receipt.await? {
            Published::Stored { .. } => Outcome::Published,
            Published::Rejected { reason, cause } => {
                Outcome::Refused(RefusedAgain::Rejected { reason, cause })
            }
            Published::Skipped | Published::NotAccepted | _ => {
                Outcome::Refused(RefusedAgain::NotTaken)
            }
        })
    };
    outcome.boxed()
}

pub(super) fn created(receipt: Receipt<Submitted>) -> Awaited {
    let outcome = async {
        Ok(match receipt.await? {
            Submitted::Created { .. } | Submitted::Duplicate { .. } => Outcome::Created,
            Submitted::Rejected { reason, cause, .. } => {
                Outcome::Refused(RefusedAgain::Rejected { reason, cause })
            }
            Submitted::Expired | Submitted::Skipped | Submitted::NotAccepted | _ => {
                Outcome::Refused(RefusedAgain::NotTaken)
            }
        })
    };
    outcome.boxed()
}
