//! Records that keep what their message came with.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use connector_core::{BoxError, decode::Decode};

use crate::message::{Message, Metadata};

/// Makes a decoder of messages from one of payloads, whose records keep the message's metadata.
///
/// ```
/// use pubsub_source::{Decoded, PubsubSource, decode::{WithMetadata, Text, text, with_metadata}};
/// # use futures::StreamExt;
/// # async fn read(source: PubsubSource) -> Result<(), Box<dyn std::error::Error>> {
/// let mut lines: Decoded<WithMetadata<Text>> = source.decode(with_metadata(text()));
/// while let Some(line) = lines.next().await {
///     let line = line?;
///     println!("{} says {}", line.metadata.id(), line.record);
/// }
/// # Ok(())
/// # }
/// ```
pub fn with_metadata<D: Decode<Bytes>>(decoder: D) -> WithMetadata<D> {
    WithMetadata(decoder)
}

/// The decoder that [`with_metadata`] makes.
#[derive(Debug, Clone)]
pub struct WithMetadata<D>(D);

/// A record with the metadata of its message, which all records of the message share.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Annotated<R> {
    /// What was made of the payload.
    pub record: R,
    /// What else the message had.
    pub metadata: Arc<Metadata>,
}

impl<R> Annotated<R> {
    /// Applies `f` to the record.
    pub fn map<T>(self, f: impl FnOnce(R) -> T) -> Annotated<T> {
        Annotated {
            record: f(self.record),
            metadata: self.metadata,
        }
    }
}

impl<D: Decode<Bytes>> Decode<Message> for WithMetadata<D> {
    type Record = Annotated<D::Record>;
    type Records = Annotating<D::Records>;

    fn decode(&mut self, message: Message) -> Result<Self::Records, BoxError> {
        let (metadata, data) = message.into_parts();
        Ok(Annotating {
            records: self.0.decode(data)?,
            metadata: Arc::new(metadata),
        })
    }
}

/// The records of [`WithMetadata`].
pub struct Annotating<I> {
    records: I,
    metadata: Arc<Metadata>,
}

impl<I, R> Iterator for Annotating<I>
where
    I: Iterator<Item = Result<R, BoxError>>,
{
    type Item = Result<Annotated<R>, BoxError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.next()?;
        Some(record.map(|record| Annotated {
            record,
            metadata: Arc::clone(&self.metadata),
        }))
    }
}

impl<I> fmt::Debug for Annotating<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Annotating")
            .field("metadata", &self.metadata)
            .finish_non_exhaustive()
    }
}
