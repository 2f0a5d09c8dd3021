//! The messages of `google.longrunning` in which batch calls answer.
#![expect(
    clippy::exhaustive_structs,
    clippy::exhaustive_enums,
    reason = "messages are built field by field; new fields come with a new version of the interface"
)]

use prost_types::Any;

use super::rpc;

/// `google.longrunning.Operation`: a call whose outcome is asked for later.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Operation {
    /// The full name of the operation.
    #[prost(string, tag = "1")]
    pub name: String,
    /// How far it is, by type URL.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<Any>,
    /// Whether [`result`](Self::result) is set.
    #[prost(bool, tag = "3")]
    pub done: bool,
    /// The outcome.
    #[prost(oneof = "operation::Result", tags = "4, 5")]
    pub result: Option<operation::Result>,
}

/// Types inside [`Operation`].
pub mod operation {
    use super::{Any, rpc};

    /// The outcome of an operation that is done.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Result {
        /// It failed.
        #[prost(message, tag = "4")]
        Error(rpc::Status),
        /// It succeeded, with this answer, by type URL.
        #[prost(message, tag = "5")]
        Response(Any),
    }
}

/// `google.longrunning.GetOperationRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetOperationRequest {
    /// The full name of the operation.
    #[prost(string, tag = "1")]
    pub name: String,
}
