//! JSON bodies.

use bytes::Bytes;
use connector_core::BoxError;
use serde::Serialize;

use super::{BodyFormat, ContentType};

/// JSON, with Content-Type `application/json` unless a header gives another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a name to pass, without settings"
)]
pub struct Json;

impl<T: Serialize + ?Sized> BodyFormat<T> for Json {
    fn content_type(&self) -> ContentType {
        ContentType::Default("application/json")
    }

    fn encode(&self, value: &T) -> Result<Bytes, BoxError> {
        Ok(serde_json::to_vec(value)?.into())
    }
}
