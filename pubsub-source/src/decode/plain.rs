//! Payloads as they are.

use std::iter;

use bytes::Bytes;
use connector_core::{BoxError, decode::Decode};

/// A decoder that hands payloads out as bytes. Copies nothing.
#[must_use]
pub fn raw() -> Raw {
    Raw(())
}

/// The decoder that [`raw`] makes.
#[derive(Debug, Clone, Copy)]
pub struct Raw(());

impl<M: Into<Bytes>> Decode<M> for Raw {
    type Record = Bytes;
    type Records = iter::Once<Result<Bytes, BoxError>>;

    fn decode(&mut self, payload: M) -> Result<Self::Records, BoxError> {
        Ok(iter::once(Ok(payload.into())))
    }
}

/// A decoder of payloads that are text in UTF-8.
///
/// ```
/// use bytes::Bytes;
/// use pubsub_source::decode::{Decode, text};
///
/// let mut decoder = text();
/// let record = decoder.decode(Bytes::from("grüß dich"))?.next();
/// assert_eq!(record.transpose()?.as_deref(), Some("grüß dich"));
/// assert!(decoder.decode(Bytes::from_static(b"gr\xfc\xdf dich")).is_err());
/// # Ok::<(), connector_core::BoxError>(())
/// ```
#[must_use]
pub fn text() -> Text {
    Text(())
}

/// The decoder that [`text`] makes.
#[derive(Debug, Clone, Copy)]
pub struct Text(());

impl<M: Into<Bytes>> Decode<M> for Text {
    type Record = String;
    type Records = iter::Once<Result<String, BoxError>>;

    fn decode(&mut self, payload: M) -> Result<Self::Records, BoxError> {
        // Moves the bytes where nobody else has them.
        let text = String::from_utf8(Vec::from(payload.into()));
        let text = text.map_err(|error| NotText {
            valid: error.utf8_error().valid_up_to(),
        });
        Ok(iter::once(Ok(text?)))
    }
}

/// A payload is no text in UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payload is no text in UTF-8 beyond its first {valid} bytes")]
#[non_exhaustive]
pub struct NotText {
    /// The bytes at the beginning that are text.
    pub valid: usize,
}
