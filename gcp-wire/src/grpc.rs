//! gRPC over HTTP/2: framing of requests, reading of answers.

mod body;
mod pieces;
mod reader;
mod verdict;

pub use self::body::EncodedBody;

pub(crate) use self::body::{Outgoing, RequestBody, frame};
pub(crate) use self::pieces::Pieces;
pub(crate) use self::reader::{Event, ReadFault, Reader};
pub(crate) use self::verdict::head_status;
