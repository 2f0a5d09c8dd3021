//! A scripted status.

use bytes::Bytes;
use prost::Message;
use prost_types::Any;

use crate::cloudtasks::proto::{ErrorInfo, RpcStatus};
use crate::code::Code;

/// The type address of `google.rpc.ErrorInfo` inside an `Any`.
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

/// A gRPC status with which a call is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The code.
    pub code: Code,
    /// The text.
    pub message: String,
    /// What `grpc-status-details-bin` carries: an encoded `google.rpc.Status`, or anything else to
    /// see what a client makes of it. Empty leaves the entry out.
    pub details: Bytes,
}

impl Answer {
    /// A status without details.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Bytes::new(),
        }
    }

    /// This status with the bytes of its details entry given.
    #[must_use]
    pub fn details(mut self, details: impl Into<Bytes>) -> Self {
        self.details = details.into();
        self
    }

    /// The refusal of ack ids as an exactly-once subscription words it: INVALID_ARGUMENT whose
    /// details name, per ack id, a reason such as `PERMANENT_FAILURE_INVALID_ACK_ID` or
    /// `TRANSIENT_FAILURE_OTHER`. Ids that are not named count as done.
    #[must_use]
    pub fn ack_ids<'a>(failures: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let info = ErrorInfo {
            reason: "EXACTLY_ONCE_ACKID_FAILURE".to_owned(),
            domain: "pubsub.googleapis.com".to_owned(),
            metadata: failures
                .into_iter()
                .map(|(ack_id, reason)| (ack_id.to_owned(), reason.to_owned()))
                .collect(),
        };
        Self::new(
            Code::InvalidArgument,
            "Some acknowledgement ids in the request were invalid. This could be because the \
             acknowledgement ids have expired or the acknowledgement ids were malformed.",
        )
        .error_info(&info)
    }

    fn error_info(self, info: &ErrorInfo) -> Self {
        let status = RpcStatus {
            code: self.code.number(),
            message: self.message.clone(),
            details: vec![Any {
                type_url: ERROR_INFO.to_owned(),
                value: info.encode_to_vec(),
            }],
        };
        self.details(status.encode_to_vec())
    }
}
