//! Bodies of tasks.

#[cfg(feature = "avro")]
mod avro;
mod csv;
mod error;
mod form;
mod json;
mod text;
mod tree;

#[cfg(feature = "avro")]
pub use avro::Avro;
pub use csv::Csv;
pub use error::BodyError;
pub use form::Form;
pub use json::Json;
pub use text::{Charset, Text};

use bytes::Bytes;
use connector_core::BoxError;

/// Makes bodies of values, for `body_as` of [`HttpTask`](crate::HttpTask::body_as) and
/// [`AppEngineTask`](crate::AppEngineTask::body_as).
///
/// [`Json`], [`Csv`], [`Text`] and [`Form`] are ready-made; implement it for any other serializer.
/// Bytes that are a body already need none: `body` takes them.
///
/// ```
/// use bytes::Bytes;
/// use cloudtasks_sink::{BodyFormat, ContentType, HttpTask};
/// use connector_core::BoxError;
///
/// struct Lines;
///
/// impl BodyFormat<[String]> for Lines {
///     fn content_type(&self) -> ContentType {
///         ContentType::Default("text/plain")
///     }
///
///     fn encode(&self, lines: &[String]) -> Result<Bytes, BoxError> {
///         Ok(lines.join("\n").into())
///     }
/// }
///
/// let lines = ["a".to_owned(), "b".to_owned()];
/// let task = HttpTask::post("https://partner.example/orders")?.body_as(&Lines, &lines[..])?;
/// # let _: HttpTask = task;
/// # Ok::<(), cloudtasks_sink::TaskError>(())
/// ```
pub trait BodyFormat<T: ?Sized> {
    /// The Content-Type that these bodies bring along.
    fn content_type(&self) -> ContentType;

    /// The body of `value`. Not called for a method that takes no body.
    ///
    /// # Errors
    ///
    /// Whatever makes this one value impossible to serialize.
    fn encode(&self, value: &T) -> Result<Bytes, BoxError>;
}

/// The Content-Type that a body brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContentType {
    /// None: there is a Content-Type only where a header gives one.
    Unset,
    /// This one, unless a header gives another.
    Default(&'static str),
    /// This one and no other: a header that gives another makes the task a rejection.
    Fixed(&'static str),
}

#[cfg(test)]
mod tests;
