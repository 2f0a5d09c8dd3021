//! What goes wrong when a sink is built, and while it runs.

mod build;

pub use build::BuildError;

use std::time::Duration;

use connector_core::{Cause, RejectedReason};
use gcp_wire::{Code, RpcError, TopicName};

/// Why a sink ended.
///
/// An error of the sink is its last word (only [`NotReady`](Self::NotReady) is not): everything
/// transient was retried inside. Nothing that a completed checkpoint covers is lost; the host's
/// rule is to rebuild from its last saved state, after which what was not confirmed comes again.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// A record was given to a sink that has no room. It was not accepted; the sink goes on.
    #[error(
        "the sink has no room and did not accept the record; wait for poll_ready (or ready()) before each record"
    )]
    NotReady,
    /// The resolver named no destination. That is configuration, not data, so it never reaches the
    /// failure handler.
    #[error(
        "the destination resolver named no topic for a record; nothing of it was sent, make the resolver answer a topic for every record and rebuild from the last saved state"
    )]
    NoDestination,
    /// A message has an ordering key, and ordering is off.
    #[error(
        "a message for {topic} has the ordering key {key:?} but message_ordering is off; it was not sent, set message_ordering(true) or drop the key"
    )]
    OrderingDisabled {
        /// Where the message was to go.
        topic: TopicName,
        /// Its ordering key.
        key: String,
    },
    /// A topic does not exist.
    #[error(
        "topic {topic} does not exist; what was to go there was not stored, create the topic and rebuild from the last saved state"
    )]
    TopicMissing {
        /// The topic.
        topic: TopicName,
        /// What the service said.
        #[source]
        cause: Cause,
    },
    /// A topic does not exist, and could not be created.
    #[error(
        "topic {topic} does not exist and could not be created; what was to go there was not stored, create the topic (or grant pubsub.topics.create) and rebuild from the last saved state"
    )]
    TopicNotCreated {
        /// The topic.
        topic: TopicName,
        /// What the service said.
        #[source]
        cause: Cause,
    },
    /// The service refused to publish to a topic, and would refuse again.
    #[error(
        "publishing to {topic} was refused for good; what was not confirmed comes again after a rebuild from the last saved state, remove the cause first"
    )]
    Refused {
        /// The topic.
        topic: TopicName,
        /// What the service said.
        #[source]
        cause: Cause,
    },
    /// Publishing to a topic failed for as long as retries are allowed.
    #[error(
        "publishing to {topic} failed {attempts} times in {}s; what was not confirmed comes again after a rebuild from the last saved state", after.as_secs()
    )]
    RetriesExhausted {
        /// The topic.
        topic: TopicName,
        /// The attempts made.
        attempts: u32,
        /// The time since the first of them.
        after: Duration,
        /// The last failure.
        #[source]
        cause: Cause,
    },
    /// The service answered a request in a way that does not name each of its messages.
    #[error(
        "the answer for {topic} names {named} of {sent} messages; the others count as not stored and come again after a rebuild from the last saved state"
    )]
    IncompleteAnswer {
        /// The topic.
        topic: TopicName,
        /// Messages in the request.
        sent: usize,
        /// Message ids in the answer.
        named: usize,
    },
    /// Nothing completed for too long while the host waited.
    #[error(
        "nothing completed for {}s while {items} messages were waiting{}; they come again after a rebuild from the last saved state, progress_timeout sets the limit",
        after.as_secs(), towards(topic.as_ref())
    )]
    Stalled {
        /// How long nothing completed.
        after: Duration,
        /// Messages without a verdict.
        items: usize,
        /// Where the oldest request goes; none when the failure handler is what did not answer.
        topic: Option<TopicName>,
        /// The oldest request's last failure, if it failed at all.
        #[source]
        cause: Option<Cause>,
    },
    /// A record was rejected and the failure handler's verdict is `Fail`, as it is by default.
    #[error(
        "a record whose destination is {destination} was rejected ({reason:?}) and the failure handler ended the sink; it comes again after a rebuild from the last saved state, choose another on_rejected handler to go on without it"
    )]
    Rejected {
        /// The topic, or `unresolved`.
        destination: String,
        /// Which rule the record broke.
        reason: RejectedReason,
        /// What the encoder, the check or the service said.
        #[source]
        cause: Option<Cause>,
    },
    /// The service refused so many messages in a row that the data is not the likely cause.
    #[error(
        "{count} messages in a row were rejected, the last for {topic}; the failure handler has them, max_consecutive_rejections sets the limit"
    )]
    TooManyRejections {
        /// Confirmed rejections without a success in between.
        count: u32,
        /// Where the last one was to go.
        topic: TopicName,
        /// What the service said about the last one.
        #[source]
        cause: Cause,
    },
    /// The failure handler could not take or keep what it was given.
    #[error(
        "the failure handler failed; what it was given comes again after a rebuild from the last saved state"
    )]
    Handler {
        /// What went wrong inside it.
        #[source]
        cause: Cause,
    },
    /// The stage was full and the host took no checkpoint for too long.
    #[error(
        "the stage is full with {items} messages of {bytes} bytes, and no snapshot was taken for {}s; none of them was published, those that a saved state names are published after a restore and the others come again; take a checkpoint when the sink asks for one, or set a larger stage or progress_timeout", after.as_secs()
    )]
    StageFull {
        /// How long the host waited for room without a snapshot.
        after: Duration,
        /// Messages that wait for a commit.
        items: usize,
        /// Their encoded bytes.
        bytes: usize,
    },
    /// A staged message was refused, and no more may be kept aside.
    #[error(
        "a committed message for {topic} was refused and the quarantine of {items} messages and {bytes} bytes is full; the saved state still names it, choose an on_rejected handler that takes such messages over, set a larger quarantine, or publish or discard what is in it"
    )]
    QuarantineFull {
        /// Where the message was to go.
        topic: TopicName,
        /// The most messages in quarantine.
        items: usize,
        /// The most bytes in quarantine.
        bytes: usize,
        /// What the service said.
        #[source]
        cause: Option<Cause>,
    },
    /// `close` ran out of time.
    #[error(
        "{items} messages were not confirmed within the {}s of close_timeout; they come again after a rebuild from the last saved state", within.as_secs_f64()
    )]
    Unsent {
        /// Messages without a verdict.
        items: usize,
        /// The budget of `close`.
        within: Duration,
    },
    /// The sink ended earlier.
    #[error(
        "the sink is closed; what was not confirmed comes again after a rebuild from the last saved state"
    )]
    Closed {
        /// What ended it.
        #[source]
        cause: Cause,
    },
    /// The host closed the sink and went on using it.
    #[error("the sink was closed by its host; build a new one to publish more")]
    ClosedByHost,
    /// The sink's driver is gone: its future or its runtime was dropped.
    #[error(
        "the sink's driver is gone; what was not confirmed comes again after a rebuild from the last saved state, keep the driver's future polled or its runtime alive until close() returns"
    )]
    DriverGone,
    /// Code inside the sink's driver panicked: the failure handler, or a defect of the sink.
    #[error(
        "the sink's driver panicked: {message}; what was not confirmed comes again after a rebuild from the last saved state"
    )]
    Panicked {
        /// The panic's text, at most 200 characters.
        message: String,
    },
}

impl SinkError {
    /// The gRPC code of the service's answer, where one ended the sink.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        let cause = match self {
            Self::TopicMissing { cause, .. }
            | Self::TopicNotCreated { cause, .. }
            | Self::Refused { cause, .. }
            | Self::RetriesExhausted { cause, .. }
            | Self::TooManyRejections { cause, .. } => cause,
            Self::Stalled { cause, .. }
            | Self::Rejected { cause, .. }
            | Self::QuarantineFull { cause, .. } => cause.as_ref()?,
            Self::Closed { cause } => {
                let inner = cause.get().downcast_ref::<Self>()?;
                return inner.code();
            }
            Self::NotReady
            | Self::NoDestination
            | Self::OrderingDisabled { .. }
            | Self::IncompleteAnswer { .. }
            | Self::Handler { .. }
            | Self::StageFull { .. }
            | Self::Unsent { .. }
            | Self::ClosedByHost
            | Self::DriverGone
            | Self::Panicked { .. } => return None,
        };
        cause.get().downcast_ref::<RpcError>().map(RpcError::code)
    }
}

fn towards(topic: Option<&TopicName>) -> String {
    topic.map_or_else(
        || " for the failure handler".to_owned(),
        |topic| format!(", the oldest for {topic}"),
    )
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn the_code_is_found_behind_a_closed_sink() {
        let cause = Cause::new(RpcError::status("Publish", Code::PermissionDenied, "no"));
        let refused = SinkError::Refused {
            topic: "projects/demo/topics/orders".parse().unwrap(),
            cause,
        };
        let closed = SinkError::Closed {
            cause: Cause::new(refused),
        };
        assert_eq!(closed.code(), Some(Code::PermissionDenied));
        assert_eq!(SinkError::NoDestination.code(), None);
    }

    #[test]
    fn a_text_never_repeats_its_source() {
        let cause = Cause::new(RpcError::status("Publish", Code::NotFound, "a-marker"));
        let missing = SinkError::TopicMissing {
            topic: "projects/demo/topics/orders".parse().unwrap(),
            cause,
        };
        assert!(missing.to_string().contains("projects/demo/topics/orders"));
        assert!(!missing.to_string().contains("a-marker"));
        assert!(missing.source().unwrap().to_string().contains("a-marker"));
    }
}
