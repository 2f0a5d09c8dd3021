//! A value in the order in which it serializes.

use serde::ser::{self, Serialize, SerializeMap, SerializeSeq, SerializeStruct};

use super::BodyError;

/// What the formats that take few types look at. Unlike a JSON value it keeps the declared order,
/// and tells text from what merely reads like it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tree {
    Null,
    Text(String),
    /// Another single value.
    Scalar {
        kind: &'static str,
        text: String,
    },
    List(Vec<Self>),
    Fields(Vec<(String, Self)>),
    /// What no format here takes.
    Other(&'static str),
}

impl Tree {
    pub(super) fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, BodyError> {
        value.serialize(Planter)
    }

    /// What it is, for an error.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "absent",
            Self::Text(_) => "a text",
            Self::Scalar { kind, .. } | Self::Other(kind) => kind,
            Self::List(_) => "a list",
            Self::Fields(_) => "a struct or map",
        }
    }

    fn number(number: impl ToString) -> Self {
        Self::Scalar {
            kind: "a number",
            text: number.to_string(),
        }
    }
}

/// An enum with data, which no format here takes.
const VARIANT: Tree = Tree::Other("an enum with data");

/// Makes the tree of a value.
struct Planter;

impl ser::Serializer for Planter {
    type Ok = Tree;
    type Error = BodyError;
    type SerializeSeq = Elements;
    type SerializeTuple = Elements;
    type SerializeTupleStruct = Elements;
    type SerializeTupleVariant = Variant;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Variant;

    fn serialize_bool(self, value: bool) -> Result<Tree, BodyError> {
        Ok(Tree::Scalar {
            kind: "a boolean",
            text: value.to_string(),
        })
    }

    fn serialize_i8(self, value: i8) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_i16(self, value: i16) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_i32(self, value: i32) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_i64(self, value: i64) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_i128(self, value: i128) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_u8(self, value: u8) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_u16(self, value: u16) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_u32(self, value: u32) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_u64(self, value: u64) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_u128(self, value: u128) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_f32(self, value: f32) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_f64(self, value: f64) -> Result<Tree, BodyError> {
        Ok(Tree::number(value))
    }

    fn serialize_char(self, value: char) -> Result<Tree, BodyError> {
        Ok(Tree::Scalar {
            kind: "a character",
            text: value.to_string(),
        })
    }

    fn serialize_str(self, value: &str) -> Result<Tree, BodyError> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn serialize_bytes(self, _value: &[u8]) -> Result<Tree, BodyError> {
        Ok(Tree::Other("binary"))
    }

    fn serialize_none(self) -> Result<Tree, BodyError> {
        Ok(Tree::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Tree, BodyError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Tree, BodyError> {
        Ok(Tree::Null)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Tree, BodyError> {
        Ok(Tree::Null)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Tree, BodyError> {
        Ok(Tree::Scalar {
            kind: "an enum",
            text: variant.to_owned(),
        })
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Tree, BodyError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<Tree, BodyError> {
        Ok(VARIANT)
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Elements, BodyError> {
        Ok(Elements(Vec::new()))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Elements, BodyError> {
        Ok(Elements(Vec::new()))
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _length: usize,
    ) -> Result<Elements, BodyError> {
        Ok(Elements(Vec::new()))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Variant, BodyError> {
        Ok(Variant)
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Entries, BodyError> {
        Ok(Entries::default())
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Entries, BodyError> {
        Ok(Entries::default())
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Variant, BodyError> {
        Ok(Variant)
    }
}

/// A list on its way.
struct Elements(Vec<Tree>);

impl SerializeSeq for Elements {
    type Ok = Tree;
    type Error = BodyError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), BodyError> {
        self.0.push(Tree::of(value)?);
        Ok(())
    }

    fn end(self) -> Result<Tree, BodyError> {
        Ok(Tree::List(self.0))
    }
}

impl ser::SerializeTuple for Elements {
    type Ok = Tree;
    type Error = BodyError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), BodyError> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<Tree, BodyError> {
        SerializeSeq::end(self)
    }
}

impl ser::SerializeTupleStruct for Elements {
    type Ok = Tree;
    type Error = BodyError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), BodyError> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<Tree, BodyError> {
        SerializeSeq::end(self)
    }
}

/// Fields on their way.
#[derive(Default)]
struct Entries {
    fields: Vec<(String, Tree)>,
    /// The name of the next one.
    name: Option<String>,
}

impl SerializeMap for Entries {
    type Ok = Tree;
    type Error = BodyError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), BodyError> {
        match Tree::of(key)? {
            Tree::Text(name) => self.name = Some(name),
            other @ (Tree::Null
            | Tree::Scalar { .. }
            | Tree::List(_)
            | Tree::Fields(_)
            | Tree::Other(_)) => {
                return Err(BodyError::Name {
                    found: other.kind(),
                });
            }
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), BodyError> {
        let name = self
            .name
            .take()
            .ok_or(BodyError::Name { found: "absent" })?;
        self.fields.push((name, Tree::of(value)?));
        Ok(())
    }

    fn end(self) -> Result<Tree, BodyError> {
        Ok(Tree::Fields(self.fields))
    }
}

impl SerializeStruct for Entries {
    type Ok = Tree;
    type Error = BodyError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), BodyError> {
        self.fields.push((name.to_owned(), Tree::of(value)?));
        Ok(())
    }

    fn end(self) -> Result<Tree, BodyError> {
        SerializeMap::end(self)
    }
}

/// The data of an enum, which does not matter.
struct Variant;

impl ser::SerializeTupleVariant for Variant {
    type Ok = Tree;
    type Error = BodyError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, _value: &T) -> Result<(), BodyError> {
        Ok(())
    }

    fn end(self) -> Result<Tree, BodyError> {
        Ok(VARIANT)
    }
}

impl ser::SerializeStructVariant for Variant {
    type Ok = Tree;
    type Error = BodyError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        _name: &'static str,
        _value: &T,
    ) -> Result<(), BodyError> {
        Ok(())
    }

    fn end(self) -> Result<Tree, BodyError> {
        Ok(VARIANT)
    }
}
