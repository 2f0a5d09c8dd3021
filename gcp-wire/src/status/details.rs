use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost::Message as _;

use super::error::bounded;
use crate::proto::rpc::{ErrorInfo, RetryInfo, Status};

/// Binary headers come with or without padding; gRPC asks to accept both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why one acknowledgement or deadline change of an exactly-once subscription failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AckFailure {
    /// Try again with the same ack id.
    Transient(String),
    /// The ack id is of no use any more: the message will come again, or was acknowledged.
    Permanent(String),
}

/// What the server said beyond code and message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Details {
    pub(crate) acks: BTreeMap<String, AckFailure>,
    pub(crate) retry_after: Option<Duration>,
}

/// The details cannot be read. Without them it is unknown which ids of a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnreadableDetails;

impl Details {
    /// Reads the value of `grpc-status-details-bin`.
    pub(crate) fn from_header(value: &[u8]) -> Result<Self, UnreadableDetails> {
        let bytes = BASE64.decode(value).map_err(|_| UnreadableDetails)?;
        let status = Status::decode(&bytes[..]).map_err(|_| UnreadableDetails)?;
        let mut details = Self::default();
        for any in status.details {
            if any.type_url == ErrorInfo::TYPE_URL {
                let info = ErrorInfo::decode(&any.value[..]).map_err(|_| UnreadableDetails)?;
                details
                    .acks
                    .extend(info.metadata.into_iter().filter_map(ack_failure));
            } else if any.type_url == RetryInfo::TYPE_URL {
                let info = RetryInfo::decode(&any.value[..]).map_err(|_| UnreadableDetails)?;
                details.retry_after = info
                    .retry_delay
                    .and_then(|delay| Duration::try_from(delay).ok());
            }
        }
        Ok(details)
    }
}

/// The service marks each failed ack id with a reason that begins with its class.
fn ack_failure((ack_id, reason): (String, String)) -> Option<(String, AckFailure)> {
    let failure = if reason.starts_with("TRANSIENT_FAILURE_") {
        AckFailure::Transient(bounded(&reason))
    } else if reason.starts_with("PERMANENT_FAILURE_") {
        AckFailure::Permanent(bounded(&reason))
    } else {
        // Other entries of the map are not ack ids (`service`, `method` and the like).
        return None;
    };
    Some((ack_id, failure))
}
