//! Form bodies.

use bytes::Bytes;
use connector_core::BoxError;
use form_urlencoded::Serializer;
use serde::Serialize;

use super::tree::Tree;
use super::{BodyError, BodyFormat, ContentType};

/// A form, `application/x-www-form-urlencoded`, as browsers send it.
///
/// The fields of a struct (or the entries of a map) in their order: text becomes one pair, a list of
/// text one pair for each element, `None` and an empty list none. Any other type is refused: how a
/// number or a date is to read is for the record to say, so convert it to a string. A form whose
/// fields are all absent is an empty body.
///
/// The Content-Type belongs to the form: a header that says the same is fine, one that says
/// anything else, a charset included, makes the task a rejection.
///
/// ```
/// use cloudtasks_sink::{Form, HttpTask};
///
/// #[derive(serde::Serialize)]
/// struct Order<'a> {
///     name: &'a str,
///     #[serde(rename = "items[]")]
///     items: Vec<&'a str>,
///     note: Option<String>,
/// }
///
/// let order = Order { name: "Alice & Bob", items: vec!["a", "b"], note: None };
/// let task = HttpTask::post("https://partner.example/")?
///     .body_as(&Form, &order)?;      // name=Alice+%26+Bob&items%5B%5D=a&items%5B%5D=b
/// # let _: HttpTask = task;
/// # Ok::<(), cloudtasks_sink::TaskError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a name to pass, without settings"
)]
pub struct Form;

impl Form {
    fn encode_tree(tree: Tree) -> Result<String, BodyError> {
        let fields = match tree {
            Tree::Fields(fields) => fields,
            other @ (Tree::Null
            | Tree::Text(_)
            | Tree::Scalar { .. }
            | Tree::List(_)
            | Tree::Other(_)) => {
                return Err(BodyError::NotFields {
                    found: other.kind(),
                });
            }
        };
        let mut pairs = Serializer::new(String::new());
        for (field, value) in fields {
            match value {
                Tree::Null => {}
                Tree::Text(text) => {
                    pairs.append_pair(&field, &text);
                }
                Tree::List(elements) => {
                    for (index, element) in elements.into_iter().enumerate() {
                        let Tree::Text(text) = element else {
                            let found = element.kind();
                            return Err(BodyError::Element {
                                field,
                                index,
                                found,
                            });
                        };
                        pairs.append_pair(&field, &text);
                    }
                }
                other @ (Tree::Scalar { .. } | Tree::Fields(_) | Tree::Other(_)) => {
                    let found = other.kind();
                    return Err(BodyError::NotText { field, found });
                }
            }
        }
        Ok(pairs.finish())
    }
}

impl<T: Serialize + ?Sized> BodyFormat<T> for Form {
    fn content_type(&self) -> ContentType {
        ContentType::Fixed("application/x-www-form-urlencoded")
    }

    fn encode(&self, value: &T) -> Result<Bytes, BoxError> {
        Ok(Self::encode_tree(Tree::of(value)?)?.into())
    }
}
