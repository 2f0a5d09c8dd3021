//! What can end a source, and what it answers to calls it cannot follow.

use std::time::Duration;

use connector_core::{Cause, CheckpointError, Epoch, StateError};
use gcp_wire::{EndpointError, RpcError, SubscriptionName, WireError};

use crate::delivery::DeliveryId;

/// Why a source ended. Whatever it was: nothing uncommitted was acknowledged, and rebuilding from
/// the last saved state goes on where that left off.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The subscription does not exist (any more).
    #[error(
        "subscription {subscription} does not exist; nothing uncommitted was acknowledged, create it or correct the name"
    )]
    Missing {
        /// The subscription that was asked for.
        subscription: SubscriptionName,
        /// What the service answered.
        #[source]
        cause: RpcError,
    },
    /// No credentials can be had, so the service was not asked.
    #[error(
        "no credentials to read subscription {subscription} with; nothing uncommitted was acknowledged, check what is given to credentials(), or the application-default credentials of this machine"
    )]
    Credentials {
        /// The subscription that was to be read.
        subscription: SubscriptionName,
        /// What is wrong with the credentials, without their contents.
        #[source]
        cause: RpcError,
    },
    /// The service does not let these credentials read the subscription.
    #[error(
        "not allowed to read subscription {subscription}; nothing uncommitted was acknowledged, grant roles/pubsub.subscriber on it to these credentials"
    )]
    Denied {
        /// The subscription that was asked for.
        subscription: SubscriptionName,
        /// What the service answered.
        #[source]
        cause: RpcError,
    },
    /// The service refuses what it was asked in a way that trying again does not change, for
    /// example because the subscription pushes or is detached.
    #[error(
        "subscription {subscription} cannot be read; nothing uncommitted was acknowledged, see what the service says"
    )]
    Refused {
        /// The subscription that was asked for.
        subscription: SubscriptionName,
        /// What the service answered.
        #[source]
        cause: RpcError,
    },
    /// The subscription does not keep the order of keys, although the source was built to rely on
    /// it. A subscription has the property for life: this one never had it, or was created anew.
    #[error(
        "subscription {subscription} does not deliver the messages of an ordering key in order; nothing uncommitted was acknowledged, create it again with message ordering enabled, or build the source without message_ordering"
    )]
    Unordered {
        /// The subscription that is read.
        subscription: SubscriptionName,
    },
    /// Every pull stream failed for as long as the host bears.
    #[error(
        "nothing could be received from subscription {subscription} for {}s, as set by unreachable_after; nothing uncommitted was acknowledged, and rebuilding from the last saved state tries again", after.as_secs_f64()
    )]
    Unreachable {
        /// The subscription that was asked for.
        subscription: SubscriptionName,
        /// The setting `unreachable_after`.
        after: Duration,
        /// What the last attempt failed with; `None` where streams ended without an error.
        #[source]
        cause: Option<RpcError>,
    },
    /// A response cannot be read, and came again each time.
    #[error(
        "a response of subscription {subscription} could not be read and came again, {tries} times; nothing uncommitted was acknowledged, the message in it blocks the subscription until it is acknowledged by other means or expires"
    )]
    Undecodable {
        /// The subscription that was read.
        subscription: SubscriptionName,
        /// How often it was tried.
        tries: u32,
        /// What is wrong with it: its size, or the field.
        #[source]
        cause: RpcError,
    },
    /// A message cannot be decoded, and the policy for that is
    /// [`DecodeFailure::Fail`](crate::DecodeFailure::Fail). Records that were handed out before stay
    /// handed out, in the epochs that were open then; the message is not acknowledged.
    #[error(
        "message {message} of subscription {subscription} cannot be decoded beyond its first {records} records; it was not acknowledged and comes again, correct the decoder or choose DecodeFailure::Drop or DecodeFailure::Nack"
    )]
    Decode {
        /// The subscription that was read.
        subscription: SubscriptionName,
        /// The message's id.
        message: String,
        /// Records of it that were handed out, in this and in earlier deliveries.
        records: u64,
        /// What the decoder says.
        #[source]
        cause: Cause,
    },
    /// The decoder panicked while it read a message, and the host went on polling.
    #[error(
        "the decoder panicked at message {message} of subscription {subscription}; it was not acknowledged and comes again, correct the decoder"
    )]
    DecoderPanicked {
        /// The subscription that was read.
        subscription: SubscriptionName,
        /// The message's id.
        message: String,
    },
    /// The host takes no checkpoints, so nothing would ever be acknowledged.
    #[error(
        "no snapshot() within {}s of the first message, with {held} messages held; nothing was acknowledged, take checkpoints, settle messages one by one, or raise stall_after", after.as_secs_f64()
    )]
    Stalled {
        /// How long the source waited: the setting `stall_after`.
        after: Duration,
        /// Messages that are held.
        held: usize,
    },
    /// The host closed the source.
    #[error("the source was closed by its host; what was not committed was given back")]
    Closed,
    /// The time given to `close` was over first.
    #[error(
        "close_budget of {}s was over with {acknowledgements} acknowledgements and {releases} releases unconfirmed; the saved state names the former, the latter come again when their leases end", after.as_secs_f64()
    )]
    CloseTimedOut {
        /// The setting `close_budget`.
        after: Duration,
        /// Committed deliveries whose acknowledgement was not confirmed.
        acknowledgements: usize,
        /// Deliveries whose release was not confirmed.
        releases: usize,
    },
    /// The driver is gone: its future was dropped, its runtime has ended, or it panicked.
    #[error(
        "the source's driver ended early; nothing uncommitted was acknowledged, what is leased comes again when its lease ends"
    )]
    DriverGone {
        /// What became of the driver.
        #[source]
        cause: Cause,
    },
}

/// The cause of a source whose driver ended without giving a reason.
pub(crate) fn driver_gone() -> Cause {
    let error = CheckpointError::driver_gone();
    if let CheckpointError::Closed { cause } = error {
        return cause;
    }
    Cause::new(error)
}

/// A panic inside the source's own code.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the source's driver panicked: {text}")]
#[non_exhaustive]
pub struct DriverPanicked {
    /// The panic's message, if it had a printable one.
    pub text: String,
}

/// Why a delivery was not settled. Nothing changed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SettleError {
    /// The delivery belongs to an epoch that was sealed already.
    #[error(
        "delivery {delivery} is part of epoch {epoch}; it is settled by that epoch's commit, settle deliveries before the snapshot that covers them"
    )]
    Sealed {
        /// The delivery.
        delivery: DeliveryId,
        /// Its epoch.
        epoch: Epoch,
    },
    /// The delivery is not held: it was settled, released, or is another source's.
    #[error("delivery {delivery} is not held by this source; nothing was done")]
    Unknown {
        /// The delivery.
        delivery: DeliveryId,
    },
    /// Some records of the message were not handed out yet.
    #[error(
        "delivery {delivery} is not decoded to its end; nothing was done, settle a message after its last record"
    )]
    Unfinished {
        /// The delivery.
        delivery: DeliveryId,
    },
    /// The delay is longer than the service allows.
    #[error(
        "a message cannot be held back for {}s, the service allows {}s; nothing was done", asked.as_secs_f64(), limit.as_secs()
    )]
    DelayTooLong {
        /// The delay that was asked for.
        asked: Duration,
        /// The longest that is allowed.
        limit: Duration,
    },
    /// The source ended.
    #[error("the source is closed; the delivery comes again")]
    Closed {
        /// The terminal error.
        #[source]
        cause: Cause,
    },
}

impl SettleError {
    /// About the delivery as the host knows it.
    pub(crate) fn about(self, delivery: DeliveryId) -> Self {
        match self {
            Self::Sealed { epoch, .. } => Self::Sealed { delivery, epoch },
            Self::Unknown { .. } => Self::Unknown { delivery },
            Self::Unfinished { .. } => Self::Unfinished { delivery },
            other @ (Self::DelayTooLong { .. } | Self::Closed { .. }) => other,
        }
    }
}

/// Why a source could not be built. Nothing was connected or restored.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// `build()` was called outside a tokio runtime.
    #[error(
        "there is no tokio runtime to run the driver on; call build() inside one, or build_with_driver() and poll the driver yourself"
    )]
    NoRuntime,
    /// A setting has a value that it cannot have.
    #[error("{setting} is {found}, allowed is {allowed}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// Two settings contradict each other.
    #[error("{first} is {first_value} and {second} is {second_value}: {rule}")]
    Contradiction {
        /// One setting.
        first: &'static str,
        /// Its value.
        first_value: String,
        /// The other setting.
        second: &'static str,
        /// Its value.
        second_value: String,
        /// What must hold between them.
        rule: &'static str,
    },
    /// A restored state is not one of this source.
    #[error("a restored state cannot be used")]
    State {
        /// What is wrong with it.
        #[source]
        cause: StateError,
    },
    /// The endpoint in the environment is not one.
    #[error("the endpoint cannot be used")]
    Endpoint {
        /// What is wrong with it.
        #[source]
        cause: EndpointError,
    },
    /// The connection cannot be made like this.
    #[error("the connection's settings cannot be used")]
    Wire {
        /// What is wrong with them.
        #[source]
        cause: WireError,
    },
}

impl From<StateError> for BuildError {
    fn from(cause: StateError) -> Self {
        Self::State { cause }
    }
}

impl From<EndpointError> for BuildError {
    fn from(cause: EndpointError) -> Self {
        Self::Endpoint { cause }
    }
}

impl From<WireError> for BuildError {
    fn from(cause: WireError) -> Self {
        Self::Wire { cause }
    }
}
