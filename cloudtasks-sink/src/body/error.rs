//! What makes a value impossible as a body.

use super::Charset;

/// Why a value does not serialize as CSV, as a form, as text or as Avro.
///
/// The source of [`TaskError::Body`](crate::TaskError::Body).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// A form needs named fields.
    #[error("a form is made of a struct or a map, not of {found}")]
    NotFields {
        /// What there was instead.
        found: &'static str,
    },
    /// A form takes text only.
    #[error(
        "the field {field:?} is {found}, and a form takes text and lists of text; convert it to a string"
    )]
    NotText {
        /// The name of the field.
        field: String,
        /// What it is.
        found: &'static str,
    },
    /// An element of a list of a form is no text.
    #[error(
        "element {index} of the field {field:?} is {found}, and a form takes text; convert it to a string or leave it out"
    )]
    Element {
        /// The name of the field.
        field: String,
        /// The place in the list, from 0.
        index: usize,
        /// What it is.
        found: &'static str,
    },
    /// A row needs columns.
    #[error("a CSV row is made of a struct, a list or a tuple, not of {found}")]
    NotARow {
        /// What there was instead.
        found: &'static str,
    },
    /// A column holds one value.
    #[error("column {column} is {found}, which is no single value; convert it to a string")]
    Column {
        /// The place in the row, from 0.
        column: usize,
        /// What it is.
        found: &'static str,
    },
    /// The delimiter and the quote of a CSV format do not tell its columns apart.
    #[error(
        "delimiter {} and quote {} must be two ASCII characters other than line breaks", delimiter.escape_ascii(), quote.escape_ascii()
    )]
    Dialect {
        /// The delimiter.
        delimiter: u8,
        /// The quote.
        quote: u8,
    },
    /// The charset has no such character.
    #[error("the text holds {symbol:?}, which {charset} does not have")]
    Unencodable {
        /// The first such character.
        symbol: char,
        /// The charset.
        charset: Charset,
    },
    /// The name of a field is no text.
    #[error("the name of a field is {found}; names are text")]
    Name {
        /// What it is.
        found: &'static str,
    },
    /// The text is no Avro schema.
    #[cfg(feature = "avro")]
    #[error("the Avro schema cannot be read: {message}")]
    AvroSchema {
        /// What is wrong with it.
        message: String,
    },
    /// The value does not fit the Avro schema.
    #[cfg(feature = "avro")]
    #[error("the value does not fit the Avro schema; compare its fields, by name and type")]
    AvroValue,
    /// The value's own code for serializing it failed.
    #[error("the value does not serialize: {message}")]
    Value {
        /// What it said.
        message: String,
    },
}

impl serde::ser::Error for BodyError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Value {
            message: message.to_string(),
        }
    }
}
