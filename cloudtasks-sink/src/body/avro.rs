//! Avro bodies.

use std::fmt;

use apache_avro::Schema;
use apache_avro::writer::datum::GenericDatumWriter;
use bytes::Bytes;
use connector_core::BoxError;
use serde::Serialize;

use super::{BodyError, BodyFormat, ContentType};

/// One value in Avro's binary encoding: no container, no schema and no fingerprint around it, and no
/// Content-Type. Needs the feature `avro`.
///
/// Fields are found by their names; one that the schema has and the value does not needs a default
/// there. Parse the schema once, outside the encoder.
///
/// ```
/// use cloudtasks_sink::{Avro, HttpTask};
///
/// #[derive(serde::Serialize)]
/// struct Order { id: &'static str, quantity: i32, rush: bool }
///
/// let schema = Avro::parse(r#"{"type": "record", "name": "Order", "fields": [
///     {"name": "id", "type": "string"},
///     {"name": "quantity", "type": "int"},
///     {"name": "rush", "type": "boolean"}
/// ]}"#)?;
/// let order = Order { id: "o-7", quantity: 3, rush: true };
/// let task = HttpTask::post("https://partner.example/orders")?.body_as(&schema, &order)?;
/// # let _: HttpTask = task;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Avro {
    schema: Schema,
}

impl Avro {
    /// Reads a schema, written in JSON.
    ///
    /// # Errors
    ///
    /// [`BodyError::AvroSchema`] when it is none.
    pub fn parse(schema: &str) -> Result<Self, BodyError> {
        let refused = |error: apache_avro::Error| BodyError::AvroSchema {
            message: error.to_string(),
        };
        let schema = Schema::parse_str(schema).map_err(refused)?;
        // Names that lead nowhere are found now, and not at the first record.
        GenericDatumWriter::builder(&schema)
            .build()
            .map_err(refused)?;
        Ok(Self { schema })
    }
}

impl<T: Serialize + ?Sized> BodyFormat<T> for Avro {
    fn content_type(&self) -> ContentType {
        ContentType::Unset
    }

    fn encode(&self, value: &T) -> Result<Bytes, BoxError> {
        let writer = GenericDatumWriter::builder(&self.schema)
            .human_readable(false)
            .build();
        // What the crate says of a value that does not fit quotes the value.
        let bytes = writer
            .and_then(|writer| writer.write_ser_to_vec(&value))
            .map_err(|_| BodyError::AvroValue)?;
        Ok(bytes.into())
    }
}

impl fmt::Debug for Avro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.schema.name().map(ToString::to_string);
        f.debug_struct("Avro").field("schema", &name).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const ORDER: &str = r#"{"type": "record", "name": "Order", "fields": [
        {"name": "id", "type": "string"},
        {"name": "quantity", "type": "int"},
        {"name": "rush", "type": "boolean"}
    ]}"#;

    #[derive(Serialize)]
    struct Order<'a> {
        id: &'a str,
        quantity: i32,
        rush: bool,
    }

    fn order() -> Order<'static> {
        Order {
            id: "o-7",
            quantity: 3,
            rush: true,
        }
    }

    fn refusal(schema: &Avro, value: &impl Serialize) -> BodyError {
        let error = schema.encode(value).unwrap_err();
        error.downcast_ref::<BodyError>().unwrap().clone()
    }

    #[test]
    fn a_value_is_its_fields_in_the_order_of_the_schema_and_nothing_around_them() {
        let schema = Avro::parse(ORDER).unwrap();
        let golden = [0x06, 0x6f, 0x2d, 0x37, 0x06, 0x01];
        assert_eq!(schema.encode(&order()).unwrap(), &golden[..]);
        let content_type = BodyFormat::<Order<'_>>::content_type(&schema);
        assert_eq!(content_type, ContentType::Unset);
    }

    #[test]
    fn the_order_of_the_values_own_fields_does_not_matter() {
        #[derive(Serialize)]
        struct Turned {
            rush: bool,
            quantity: i32,
            id: &'static str,
        }
        let turned = Turned {
            rush: true,
            quantity: 3,
            id: "o-7",
        };
        let schema = Avro::parse(ORDER).unwrap();
        assert_eq!(
            schema.encode(&turned).unwrap(),
            schema.encode(&order()).unwrap()
        );
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused_without_a_word_of_it() {
        #[derive(Serialize)]
        struct Wrong {
            id: &'static str,
            quantity: &'static str,
            rush: bool,
        }
        let schema = Avro::parse(ORDER).unwrap();
        let wrong = Wrong {
            id: "secret",
            quantity: "hunter2",
            rush: true,
        };
        let error = refusal(&schema, &wrong);
        assert_eq!(error, BodyError::AvroValue);
        let text = error.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("secret"),
            "{text}"
        );
        let missing = BTreeMap::from([("id", "o-7")]);
        assert_eq!(refusal(&schema, &missing), BodyError::AvroValue);
    }

    #[test]
    fn a_schema_that_is_none_is_refused_when_it_is_read() {
        for wrong in ["", "{}", "order", r#"{"type": "record", "name": "Order"}"#] {
            let error = Avro::parse(wrong).unwrap_err();
            assert!(matches!(error, BodyError::AvroSchema { .. }), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_value_comes_back_as_it_was(id in ".*", quantity: i32, rush: bool) {
            let schema = Avro::parse(ORDER).unwrap();
            let order = Order { id: &id, quantity, rush };
            let bytes = schema.encode(&order).unwrap();
            let reader = apache_avro::reader::datum::GenericDatumReader::builder(&schema.schema)
                .build()
                .unwrap();
            let read = reader.read_value(&mut &bytes[..]).unwrap();
            let expected = apache_avro::types::Value::Record(vec![
                ("id".to_owned(), apache_avro::types::Value::String(id.clone())),
                ("quantity".to_owned(), apache_avro::types::Value::Int(quantity)),
                ("rush".to_owned(), apache_avro::types::Value::Boolean(rush)),
            ]);
            prop_assert_eq!(read, expected);
        }
    }
}
