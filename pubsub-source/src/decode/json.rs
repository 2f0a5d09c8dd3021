//! JSON payloads.

use std::{fmt, iter, marker::PhantomData};

use connector_core::{BoxError, decode::Decode};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// A decoder of payloads that are one JSON document each.
///
/// ```
/// use pubsub_source::decode::{Decode, json};
///
/// #[derive(serde::Deserialize)]
/// struct Order { total: u32 }
///
/// let mut decoder = json::<Order>();
/// let order = decoder.decode(r#"{"total": 30}"#)?.next().ok_or("one record")??;
/// assert_eq!(order.total, 30);
/// assert!(decoder.decode("{").is_err());
/// # Ok::<(), connector_core::BoxError>(())
/// ```
#[must_use]
pub fn json<T: DeserializeOwned>() -> Json<T> {
    Json(PhantomData)
}

/// The decoder that [`json`] makes: a record for each payload, made by serde.
pub struct Json<T>(PhantomData<fn() -> T>);

impl<T: DeserializeOwned + Send, M: AsRef<[u8]>> Decode<M> for Json<T> {
    type Record = T;
    type Records = iter::Once<Result<T, BoxError>>;

    fn decode(&mut self, payload: M) -> Result<Self::Records, BoxError> {
        let record = serde_json::from_slice(payload.as_ref()).map_err(|error| NotJson::of(&error));
        Ok(iter::once(Ok(record?)))
    }
}

impl<T> fmt::Debug for Json<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Json")
    }
}

/// A payload is not the JSON that was expected. Says where, and nothing of what stands there: what
/// serde_json says quotes the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotJson {
    /// The payload is no JSON document.
    #[error("the payload is no JSON from line {line}, column {column} on")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The payload is JSON of another shape.
    #[error(
        "the payload is JSON of another shape than was expected, at line {line}, column {column}"
    )]
    Shape {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The payload ends in the middle.
    #[error("the payload is JSON that ends in the middle, after {line} lines")]
    Cut {
        /// The line at which it ends, from 1.
        line: usize,
    },
}

impl NotJson {
    fn of(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Eof => Self::Cut { line },
            Category::Data => Self::Shape { line, column },
            // There is no reader that could fail.
            Category::Syntax | Category::Io => Self::Syntax { line, column },
        }
    }
}
