//! CSV bodies.

use bytes::Bytes;
use connector_core::BoxError;
use serde::Serialize;

use super::tree::Tree;
use super::{BodyError, BodyFormat, ContentType};

/// One CSV row, with Content-Type `text/csv` unless a header gives another.
///
/// A struct, a list or a tuple becomes one row of its values in declared order, without a header
/// row and without a line break at its end. A value that holds the delimiter, the quote or a line
/// break is quoted, and quotes inside are doubled. A column holds one value: anything nested is
/// refused.
///
/// ```
/// use cloudtasks_sink::{Csv, HttpTask};
///
/// let format = Csv::default().null("NULL");
/// let task = HttpTask::post("https://partner.example/")?
///     .body_as(&format, &("o-7", 3, None::<bool>))?;     // o-7,3,NULL
/// # let _: HttpTask = task;
/// # Ok::<(), cloudtasks_sink::TaskError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csv {
    delimiter: u8,
    quote: u8,
    null: String,
}

impl Default for Csv {
    /// Commas, double quotes, and nothing for an absent value.
    fn default() -> Self {
        Self {
            delimiter: b',',
            quote: b'"',
            null: String::new(),
        }
    }
}

impl Csv {
    /// Rows with this delimiter and this quote, both ASCII.
    ///
    /// # Errors
    ///
    /// [`BodyError::Dialect`] when they are the same, or one of them is a line break or not ASCII.
    pub fn new(delimiter: u8, quote: u8) -> Result<Self, BodyError> {
        let usable = |byte: u8| byte.is_ascii() && !matches!(byte, b'\r' | b'\n');
        if delimiter == quote || !usable(delimiter) || !usable(quote) {
            return Err(BodyError::Dialect { delimiter, quote });
        }
        Ok(Self {
            delimiter,
            quote,
            ..Self::default()
        })
    }

    /// Writes this for an absent value (`None`, `()`). Default: nothing, so that an absent value
    /// and an empty text look alike. A text that reads like the literal is not told apart from it.
    #[must_use]
    pub fn null(mut self, literal: impl Into<String>) -> Self {
        self.null = literal.into();
        self
    }

    fn row(&self, tree: Tree) -> Result<Vec<u8>, BoxError> {
        let columns: Vec<Tree> = match tree {
            Tree::List(columns) => columns,
            Tree::Fields(fields) => fields.into_iter().map(|(_, value)| value).collect(),
            other @ (Tree::Null | Tree::Text(_) | Tree::Scalar { .. } | Tree::Other(_)) => {
                let found = other.kind();
                return Err(BodyError::NotARow { found }.into());
            }
        };
        let texts = columns
            .into_iter()
            .enumerate()
            .map(|(column, value)| match value {
                Tree::Null => Ok(self.null.clone()),
                Tree::Text(text) | Tree::Scalar { text, .. } => Ok(text),
                nested @ (Tree::List(_) | Tree::Fields(_) | Tree::Other(_)) => {
                    let found = nested.kind();
                    Err(BodyError::Column { column, found })
                }
            });
        let texts = texts.collect::<Result<Vec<String>, BodyError>>()?;
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let mut writer = csv::WriterBuilder::new()
            .delimiter(self.delimiter)
            .quote(self.quote)
            .terminator(csv::Terminator::Any(b'\n'))
            .from_writer(Vec::new());
        writer.write_record(&texts)?;
        let mut row = writer
            .into_inner()
            .map_err(csv::IntoInnerError::into_error)?;
        // The line break that ends every record.
        row.pop();
        Ok(row)
    }
}

impl<T: Serialize + ?Sized> BodyFormat<T> for Csv {
    fn content_type(&self) -> ContentType {
        ContentType::Default("text/csv")
    }

    fn encode(&self, value: &T) -> Result<Bytes, BoxError> {
        Ok(self.row(Tree::of(value)?)?.into())
    }
}
