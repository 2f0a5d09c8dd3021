//! How a message becomes records.

use crate::BoxError;

/// Turns one message into any number of records.
///
/// A decoder must be deterministic: after a restore the message may come again, and the records
/// that were already part of a durable epoch are skipped by their number. Closures that answer
/// `Result<I, BoxError>` with an iterator `I` are decoders.
pub trait Decode<M>: Send {
    /// What comes out.
    type Record;

    /// The records of one message, in order, made one at a time so that a large message does not
    /// have to expand in memory.
    type Records: Iterator<Item = Self::Record> + Send;

    /// The records of `message`.
    ///
    /// # Errors
    ///
    /// Whatever makes this one message impossible to read.
    fn decode(&mut self, message: M) -> Result<Self::Records, BoxError>;
}

impl<M, F, I> Decode<M> for F
where
    F: FnMut(M) -> Result<I, BoxError> + Send,
    I: Iterator + Send,
{
    type Record = I::Item;
    type Records = I;

    fn decode(&mut self, message: M) -> Result<I, BoxError> {
        self(message)
    }
}
