//! The administrative calls of a start, and what their failures mean.

mod step;

pub use step::Step;

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use connector_core::backoff::Backoff;
use gcp_wire::{
    Code, Connection, EncodedBody, Fault, Method, RpcError, SnapshotName, SubscriptionName,
    TopicName,
    method::{CREATE_SUBSCRIPTION, GET_SNAPSHOT, GET_SUBSCRIPTION, GET_TOPIC, SEEK},
    proto::pubsub::{GetSnapshotRequest, GetSubscriptionRequest, GetTopicRequest, Subscription},
};
use prost::Message;

use super::{PrepareError, facts::Facts};
use crate::{driver, start::SeekTarget};

/// How long one attempt may take. The service's own settings give these methods 60 s; a third leaves
/// time for another attempt within the default patience.
const ATTEMPT: Duration = Duration::from_secs(20);

/// First delay, factor and cap of trying again: the service's own retry settings for these methods
/// are 100 ms × 1.3 up to 60 s, which a start that waits for it does not have.
const RETRY: Backoff = Backoff::new(Duration::from_millis(100), 2.0, Duration::from_secs(5));

/// What came of creating a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Created {
    Made(Facts),
    /// Somebody else was faster.
    Existed,
}

/// What is known of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopicStanding {
    There,
    Missing,
    /// Looking at it is not allowed, and creating a subscription does not need it.
    Unknown,
}

/// Asks the service, again and again where that may help.
#[derive(Debug)]
pub(super) struct Admin {
    connection: Connection,
    patience: Duration,
    /// When something last went well.
    progress: Mutex<Instant>,
}

impl Admin {
    pub(super) fn new(connection: Connection, patience: Duration) -> Self {
        Self {
            connection,
            patience,
            progress: Mutex::new(driver::now()),
        }
    }

    /// The subscription's settings; `None` if it does not exist. One that was created just now may
    /// not be known everywhere yet: it does not exist if it is not found until the patience ends.
    pub(super) async fn describe(
        &self,
        subscription: &SubscriptionName,
        created: bool,
    ) -> Result<Option<Facts>, PrepareError> {
        let step = Step::describe(subscription);
        let request = GetSubscriptionRequest {
            subscription: subscription.as_str().to_owned(),
        };
        let answer = self
            .call(
                &step,
                &GET_SUBSCRIPTION,
                subscription.as_str(),
                &request,
                stays(created),
            )
            .await;
        match answer {
            Ok(Ok(found)) => Ok(Some(Facts::of(&found))),
            Ok(Err(error)) if error.code() == Code::NotFound => Ok(None),
            Ok(Err(error)) => Err(verdict(step, error)),
            Err(PrepareError::Unanswered { cause, .. }) if is_not_found(&cause) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn topic(&self, topic: &TopicName) -> Result<TopicStanding, PrepareError> {
        let step = Step::look_at_topic(topic);
        let request = GetTopicRequest {
            topic: topic.as_str().to_owned(),
        };
        let answer = self
            .call(&step, &GET_TOPIC, topic.as_str(), &request, is_final)
            .await?;
        match answer {
            Ok(_) => Ok(TopicStanding::There),
            Err(error) if error.code() == Code::NotFound => Ok(TopicStanding::Missing),
            Err(error) if error.code() == Code::PermissionDenied => Ok(TopicStanding::Unknown),
            Err(error) => Err(verdict(step, error)),
        }
    }

    /// The snapshot's topic; `None` if there is no such snapshot.
    pub(super) async fn snapshot(
        &self,
        snapshot: &SnapshotName,
    ) -> Result<Option<String>, PrepareError> {
        let step = Step::look_at_snapshot(snapshot);
        let request = GetSnapshotRequest {
            snapshot: snapshot.as_str().to_owned(),
        };
        let answer = self
            .call(&step, &GET_SNAPSHOT, snapshot.as_str(), &request, is_final)
            .await?;
        match answer {
            Ok(found) => Ok(Some(found.topic)),
            Err(error) if error.code() == Code::NotFound => Ok(None),
            Err(error) => Err(verdict(step, error)),
        }
    }

    pub(super) async fn create(
        &self,
        subscription: &SubscriptionName,
        topic: &TopicName,
        wanted: &Subscription,
    ) -> Result<Created, PrepareError> {
        let step = Step::create(subscription, topic);
        let answer = self
            .call(
                &step,
                &CREATE_SUBSCRIPTION,
                subscription.as_str(),
                wanted,
                is_final,
            )
            .await?;
        match answer {
            Ok(made) => Ok(Created::Made(Facts::of(&made))),
            // Also after an attempt of ours whose answer was lost.
            Err(error) if error.code() == Code::AlreadyExists => Ok(Created::Existed),
            Err(cause) if cause.code() == Code::NotFound => Err(PrepareError::MissingSomeTopic {
                topic: topic.clone(),
                subscription: subscription.clone(),
                cause,
            }),
            Err(error) => Err(verdict(step, error)),
        }
    }

    /// Seeks. A subscription that was created just now may not be known everywhere yet.
    pub(super) async fn seek(
        &self,
        subscription: &SubscriptionName,
        target: &SeekTarget,
        created: bool,
    ) -> Result<(), PrepareError> {
        let step = Step::seek(subscription, matches!(target, SeekTarget::Snapshot(_)));
        let request = target.request(subscription);
        let answer = self
            .call(
                &step,
                &SEEK,
                subscription.as_str(),
                &request,
                stays(created),
            )
            .await?;
        match answer {
            Ok(_) => Ok(()),
            Err(error) if error.code() == Code::NotFound => Err(match target {
                SeekTarget::Time(_) => PrepareError::Vanished {
                    subscription: subscription.clone(),
                },
                SeekTarget::Snapshot(_) => PrepareError::Refused { step, cause: error },
            }),
            Err(error) => Err(verdict(step, error)),
        }
    }

    /// The service's answer, after as many attempts as it takes.
    ///
    /// Trying goes on while something goes well: this call's attempts are bounded by the patience,
    /// counted from its first attempt or from the last success of any call, whichever is later.
    async fn call<Req, Res>(
        &self,
        step: &Step,
        method: &Method<Req, Res>,
        routing: &str,
        request: &Req,
        stays: impl Fn(&RpcError) -> bool,
    ) -> Result<Result<Res, RpcError>, PrepareError>
    where
        Req: Message,
        Res: Message + Default,
    {
        let body = EncodedBody::encode(request);
        let begun = driver::now();
        let mut attempt = 0;
        loop {
            let outcome = self
                .connection
                .call_encoded(method, routing, body.clone(), ATTEMPT.min(self.patience))
                .await;
            let now = driver::now();
            let error = match outcome {
                Err(error) if !stays(&error) => error,
                verdict => {
                    *self.last_progress() = now;
                    return Ok(verdict);
                }
            };
            let since = begun.max(*self.last_progress());
            let left = self
                .patience
                .saturating_sub(now.saturating_duration_since(since));
            if left.is_zero() {
                return Err(PrepareError::Unanswered {
                    step: step.clone(),
                    after: self.patience,
                    cause: error,
                });
            }
            attempt += 1;
            let wanted = RETRY.jittered(attempt, fastrand::f64());
            let wanted = wanted.max(error.retry_after().unwrap_or_default());
            // The last attempt is made when the patience ends.
            let pause = wanted.min(left);
            tokio::time::sleep(pause).await;
        }
    }

    fn last_progress(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether another attempt would come to the same.
fn is_final(error: &RpcError) -> bool {
    // Transport faults and our own time-outs carry codes that nobody sent.
    if error.is_transport() || error.is_timeout() {
        return false;
    }
    if error.credentials_error().is_some() {
        return error.fault() != Fault::Transient;
    }
    match error.code() {
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable => error.decode_fault().is_some(),
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::DataLoss
        | Code::Unauthenticated => true,
        // A code that this version does not know may be anything, and the patience is bounded.
        _ => false,
    }
}

/// Whether the service says that there is no such thing.
fn is_not_found(error: &RpcError) -> bool {
    error.code() == Code::NotFound && is_final(error)
}

/// Whether another attempt would come to the same, for a subscription that was created just now or
/// is old.
fn stays(created: bool) -> impl Fn(&RpcError) -> bool {
    move |error| is_final(error) && !(created && is_not_found(error))
}

fn verdict(step: Step, cause: RpcError) -> PrepareError {
    if cause.credentials_error().is_some() {
        return PrepareError::Credentials { step, cause };
    }
    // The service answers a seek without permission with UNAUTHENTICATED.
    if cause.code() == Code::PermissionDenied || cause.is_unauthenticated() {
        return PrepareError::Denied { step, cause };
    }
    PrepareError::Refused { step, cause }
}
