//! Avro payloads, by the crate `apache-avro`.

use std::{fmt, io::Cursor, iter, marker::PhantomData};

use apache_avro::{GenericSingleObjectReader, Reader, Schema, from_value};
use bytes::Bytes;
use connector_core::{BoxError, Cause, decode::Decode};
use serde::de::DeserializeOwned;

/// A decoder of payloads that are one value each, in Avro's binary encoding and without a header:
/// what Pub/Sub's own schemas call BINARY.
///
/// `schema` is the schema that the payloads were written with, as JSON. A type whose fields have
/// other names, or defaults, can say so by serde's attributes.
///
/// ```
/// use pubsub_source::decode::{Decode, avro};
///
/// #[derive(serde::Deserialize)]
/// struct Order { total: i32 }
///
/// let schema = r#"{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "int"}]}"#;
/// let mut decoder = avro::<Order>(schema)?;
/// let order = decoder.decode([60])?.next().ok_or("one record")??;
/// assert_eq!(order.total, 30);
/// # Ok::<(), connector_core::BoxError>(())
/// ```
///
/// # Errors
///
/// [`NotAvroSchema`] when `schema` is none.
pub fn avro<T: DeserializeOwned>(schema: &str) -> Result<Avro<T>, NotAvroSchema> {
    let reader = GenericSingleObjectReader::builder()
        .schema(parsed(schema)?)
        .header(Vec::new())
        .build();
    Avro::of(reader)
}

/// A decoder of payloads that are one value each in Avro's single-object encoding: two bytes and
/// the fingerprint of the schema before the value.
///
/// A payload of another schema is refused.
///
/// # Errors
///
/// [`NotAvroSchema`] when `schema` is none.
pub fn avro_single_object<T: DeserializeOwned>(schema: &str) -> Result<Avro<T>, NotAvroSchema> {
    let reader = GenericSingleObjectReader::builder()
        .schema(parsed(schema)?)
        .build();
    Avro::of(reader)
}

fn parsed(schema: &str) -> Result<Schema, NotAvroSchema> {
    Schema::parse_str(schema).map_err(NotAvroSchema::of)
}

/// The decoder that [`avro`] and [`avro_single_object`] make: a record for each payload.
pub struct Avro<T> {
    reader: GenericSingleObjectReader,
    record: PhantomData<fn() -> T>,
}

impl<T> Avro<T> {
    fn of(
        reader: Result<GenericSingleObjectReader, apache_avro::Error>,
    ) -> Result<Self, NotAvroSchema> {
        Ok(Self {
            reader: reader.map_err(NotAvroSchema::of)?,
            record: PhantomData,
        })
    }
}

impl<T: DeserializeOwned + Send, M: AsRef<[u8]>> Decode<M> for Avro<T> {
    type Record = T;
    type Records = iter::Once<Result<T, BoxError>>;

    fn decode(&mut self, payload: M) -> Result<Self::Records, BoxError> {
        let mut payload = payload.as_ref();
        // By way of a value: the crate's direct way wants the type to be named as the schema's record.
        let value = self.reader.read_value(&mut payload);
        let record = value.and_then(|value| from_value(&value));
        // What the crate says quotes the payload.
        let record = record.map_err(|_| NotAvro::Value)?;
        if !payload.is_empty() {
            return Err(NotAvro::Longer {
                bytes: payload.len(),
            }
            .into());
        }
        Ok(iter::once(Ok(record)))
    }
}

impl<T> fmt::Debug for Avro<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Avro")
    }
}

/// A decoder of payloads that are Avro container files: with their schema, and any number of values,
/// a record each, made one at a time.
///
/// Blocks compressed with `deflate` are read; for other codecs, turn on the features of the crate
/// `apache-avro` in your own dependencies.
#[must_use]
pub fn avro_container<T: DeserializeOwned>() -> AvroContainer<T> {
    AvroContainer(PhantomData)
}

/// The decoder that [`avro_container`] makes.
pub struct AvroContainer<T>(PhantomData<fn() -> T>);

impl<T: DeserializeOwned, M: Into<Bytes>> Decode<M> for AvroContainer<T> {
    type Record = T;
    type Records = AvroRecords<T>;

    fn decode(&mut self, payload: M) -> Result<Self::Records, BoxError> {
        let reader = Reader::new(Cursor::new(payload.into())).map_err(|_| NotAvro::Container)?;
        Ok(AvroRecords {
            values: reader,
            read: 0,
            record: PhantomData,
        })
    }
}

impl<T> fmt::Debug for AvroContainer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AvroContainer")
    }
}

/// The values of a container.
pub struct AvroRecords<T> {
    values: Reader<'static, Cursor<Bytes>>,
    read: u64,
    record: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Iterator for AvroRecords<T> {
    type Item = Result<T, BoxError>;

    fn next(&mut self) -> Option<Self::Item> {
        let value = self.values.next()?;
        self.read += 1;
        let number = self.read;
        let record = value.and_then(|value| from_value(&value));
        Some(record.map_err(|_| NotAvro::InContainer { number }.into()))
    }
}

impl<T> fmt::Debug for AvroRecords<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AvroRecords")
            .field("read", &self.read)
            .finish_non_exhaustive()
    }
}

/// A payload is not the Avro that was expected. Says nothing of what stands in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAvro {
    /// The payload is no value of the schema, or not of the type it is read into.
    #[error("the payload is no value of its Avro schema, or not of the expected type")]
    Value,
    /// Something follows the value.
    #[error(
        "the payload goes on for {bytes} bytes after its Avro value; was it written with another schema?"
    )]
    Longer {
        /// The bytes that follow.
        bytes: usize,
    },
    /// The payload does not begin as a container file does.
    #[error("the payload is no Avro container file")]
    Container,
    /// A value of a container cannot be read, or is not of the expected type.
    #[error("value {number} of the payload's Avro container cannot be read")]
    InContainer {
        /// The value, from 1.
        number: u64,
    },
}

/// A text is no Avro schema.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the Avro schema cannot be used")]
#[non_exhaustive]
pub struct NotAvroSchema {
    /// What is wrong with it.
    #[source]
    cause: Cause,
}

impl NotAvroSchema {
    fn of(error: apache_avro::Error) -> Self {
        Self {
            cause: Cause::new(error),
        }
    }
}
