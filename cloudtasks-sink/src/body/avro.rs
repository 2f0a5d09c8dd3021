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
