//! What the service refuses, and in which words.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::code::Code;
use crate::page::PageRefusal;

/// A request that was refused. Its text is the status message on the wire; where the service's own
/// wording is known it is used, since clients show it to people.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A resource name does not follow the rules of its kind.
    #[error("Invalid [{kind}] name: (name={name})")]
    Name {
        /// `topics`, `subscriptions`, `snapshots` or `projects`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A resource that the request needs does not exist.
    #[error("Resource not found (resource={id}).")]
    Missing {
        /// Its own part of the name.
        id: String,
    },
    /// A resource that the request would create exists.
    #[error("Resource already exists in the project (resource={id}).")]
    Exists {
        /// Its own part of the name.
        id: String,
    },
    /// A subscription went away under an open stream or a waiting pull.
    #[error("Subscription does not exist (resource={id})")]
    SubscriptionGone {
        /// Its own part of the name.
        id: String,
    },
    /// A publish request without messages.
    #[error("The request contains no messages to publish.")]
    NoMessages,
    /// Too many messages in a publish request.
    #[error(
        "The value for message_count is too large. You passed {count} in the request, but the \
         maximum value is {limit}."
    )]
    TooManyMessages {
        /// How many.
        count: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// A request whose encoded form is too long.
    #[error(
        "The value for request_size is too large. You passed {size} in the request, but the \
         maximum value is {limit}."
    )]
    RequestTooLarge {
        /// Its encoded bytes.
        size: usize,
        /// The bytes allowed.
        limit: usize,
    },
    /// An acknowledge or deadline request whose encoded form is too long.
    #[error("Request payload size exceeds the limit: {limit} bytes.")]
    PayloadTooLarge {
        /// The bytes allowed.
        limit: usize,
    },
    /// A message with neither data nor attributes. The whole request is refused.
    #[error(
        "One or more messages in the publish request is empty. Each message must contain either \
         non-empty data, or at least one attribute."
    )]
    EmptyMessage,
    /// Messages with different ordering keys in one request.
    #[error(
        "In a single publish request, all messages must have no ordering key or they must all \
         have the same ordering key."
    )]
    MixedOrderingKeys,
    /// A value of a message that is too long.
    #[error(
        "The value for {what} is too large. You passed {size} in the request, but the maximum \
         value is {limit}."
    )]
    MessageField {
        /// Which value.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The size allowed.
        limit: usize,
    },
    /// An attribute key that is empty or reserved.
    #[error("Invalid attribute key (key={key}). Keys must not be empty or start with goog.")]
    AttributeKey {
        /// The key.
        key: String,
    },
    /// A number or duration of a request that lies outside its range.
    #[error("Invalid value for {what}: {value}. It must be between {least} and {most}.")]
    Range {
        /// Which.
        what: &'static str,
        /// The value, with its unit.
        value: String,
        /// The least one allowed.
        least: &'static str,
        /// The greatest one allowed.
        most: &'static str,
    },
    /// A duration of a request that is negative.
    #[error("Invalid value for {what}: durations must not be negative.")]
    NegativeDuration {
        /// Which.
        what: &'static str,
    },
    /// A retry policy whose longest pause is shorter than its shortest.
    #[error("Invalid retry_policy: minimum_backoff must not exceed maximum_backoff.")]
    BackoffOrder,
    /// A filter that does not parse.
    #[error("Invalid filter at byte {at}: {problem}.")]
    Filter {
        /// The byte at which it went wrong.
        at: usize,
        /// What was wrong there.
        problem: &'static str,
    },
    /// A feature that is not served, asked for by a subscription or topic.
    #[error("{what} is not served by this server.")]
    NotServed {
        /// The feature.
        what: &'static str,
    },
    /// A push endpoint the service would not take.
    #[error(
        "Invalid push endpoint given (endpoint={endpoint}). Refer to \
         https://cloud.google.com/pubsub/docs/subscriber#create for more information."
    )]
    PushEndpoint {
        /// The endpoint.
        endpoint: String,
    },
    /// A schema that does not exist; none does here.
    #[error("Schema could not be found")]
    SchemaMissing,
    /// A dead-letter topic that does not exist.
    #[error("Dead letter topic not found (resource={id}).")]
    DeadLetterTopicMissing {
        /// Its own part of the name.
        id: String,
    },
    /// An update without a mask, or without the thing to update.
    #[error(
        "The update_mask in the {request} must be set, and must contain a non-empty paths list."
    )]
    EmptyMask {
        /// The request.
        request: &'static str,
    },
    /// An update of something that does not exist.
    #[error(
        "Invalid update_mask provided in the {request}: '{path}' is not a known {resource} field. \
         Note that field paths must be of the form 'push_config' rather than 'pushConfig'."
    )]
    UnknownField {
        /// The request.
        request: &'static str,
        /// The resource's kind.
        resource: &'static str,
        /// The path.
        path: String,
    },
    /// An update of something that is fixed at creation.
    #[error(
        "Invalid update_mask provided in the {request}: the '{path}' field in the {resource} is \
         immutable."
    )]
    Immutable {
        /// The request.
        request: &'static str,
        /// The resource's kind.
        resource: &'static str,
        /// The path.
        path: String,
    },
    /// A page that can not be given.
    #[error(transparent)]
    Page(#[from] PageRefusal),
    /// A pull for no messages.
    #[error("Invalid value for max_messages: it must be a positive number.")]
    MaxMessages,
    /// A request that names no ack ids.
    #[error("No ack ids specified.")]
    NoAckIds,
    /// An ack id the service never gave out, or gave out for another subscription.
    #[error("You have passed an invalid ack ID to the service (ack_id={ack_id}).")]
    AckId {
        /// The ack id.
        ack_id: String,
    },
    /// Ack ids an exactly-once subscription refused; those not named took effect.
    #[error(
        "Some acknowledgement ids in the request were invalid. This could be because the \
         acknowledgement ids have expired or the acknowledgement ids were malformed."
    )]
    AckIds {
        /// Why, by ack id.
        failures: BTreeMap<String, AckFailure>,
    },
    /// A pull from a subscription that was detached.
    #[error("Subscription is detached.")]
    Detached,
    /// A field that only the request that opens a stream may set.
    #[error("Invalid StreamingPullRequest: {field} may only be set on the initial request.")]
    OpeningOnly {
        /// The field.
        field: &'static str,
    },
    /// Lists of ack ids and deadlines of different length.
    #[error(
        "Invalid StreamingPullRequest: modify_deadline_ack_ids ({ids}) and modify_deadline_seconds \
         ({seconds}) differ in length."
    )]
    UnequalLists {
        /// The ids.
        ids: usize,
        /// The deadlines.
        seconds: usize,
    },
    /// A stream on which the client said nothing for too long, or that was open long enough.
    #[error("The service was unable to fulfill your request. Please try again. [code=8a75]")]
    StreamClosed,
    /// A seek without a target.
    #[error("The seek request names neither a time nor a snapshot.")]
    NoSeekTarget,
    /// A seek to a snapshot of another topic.
    #[error("The snapshot and the subscription must belong to the same topic.")]
    SnapshotOfOtherTopic,
    /// A snapshot of a subscription whose backlog is so old that the snapshot would expire at once.
    #[error(
        "The snapshot would expire in less than an hour, since the oldest unacknowledged message \
         of the subscription is almost seven days old."
    )]
    SnapshotTooShort,
}

impl Refusal {
    /// The status code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Missing { .. }
            | Self::SubscriptionGone { .. }
            | Self::SchemaMissing
            | Self::DeadLetterTopicMissing { .. } => Code::NotFound,
            Self::Exists { .. } => Code::AlreadyExists,
            Self::MixedOrderingKeys
            | Self::Detached
            | Self::SnapshotOfOtherTopic
            | Self::SnapshotTooShort => Code::FailedPrecondition,
            Self::NotServed { .. } => Code::Unimplemented,
            Self::StreamClosed => Code::Unavailable,
            Self::Name { .. }
            | Self::NoMessages
            | Self::TooManyMessages { .. }
            | Self::RequestTooLarge { .. }
            | Self::PayloadTooLarge { .. }
            | Self::EmptyMessage
            | Self::MessageField { .. }
            | Self::AttributeKey { .. }
            | Self::Range { .. }
            | Self::NegativeDuration { .. }
            | Self::BackoffOrder
            | Self::Filter { .. }
            | Self::PushEndpoint { .. }
            | Self::EmptyMask { .. }
            | Self::UnknownField { .. }
            | Self::Immutable { .. }
            | Self::Page(_)
            | Self::MaxMessages
            | Self::NoAckIds
            | Self::AckId { .. }
            | Self::AckIds { .. }
            | Self::OpeningOnly { .. }
            | Self::UnequalLists { .. }
            | Self::NoSeekTarget => Code::InvalidArgument,
        }
    }
}

/// Why an exactly-once subscription refused an ack id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AckFailure {
    /// The lease is over, the message was settled, or the id was never given out.
    InvalidAckId,
    /// An earlier message of the ordering key is not yet acknowledged.
    UnorderedAckId,
}

impl AckFailure {
    /// The word the service uses for it in error details.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::InvalidAckId => "PERMANENT_FAILURE_INVALID_ACK_ID",
            Self::UnorderedAckId => "TRANSIENT_FAILURE_UNORDERED_ACK_ID",
        }
    }
}
