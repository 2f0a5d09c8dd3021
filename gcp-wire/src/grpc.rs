//! gRPC over HTTP/2: framing of requests, reading of answers.

mod body;
mod reader;

pub use self::body::EncodedBody;

pub(crate) use self::body::{Outgoing, RequestBody, frame};
pub(crate) use self::reader::{Event, ReadFault, Reader, head_status};
