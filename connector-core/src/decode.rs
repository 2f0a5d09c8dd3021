//! How a message becomes records.

use std::fmt;

use crate::BoxError;

/// Turns one message into any number of records.
///
/// A decoder must be deterministic: a message may come again, after a crash or because its lease
/// ended, and the records that were handed out before are then skipped by their number.
///
/// Closures that answer `Result<I, BoxError>` are decoders, with anything that can be iterated as
/// `I`: `Ok([record])`, `Ok(Some(record))`, `Ok(None)`, `Ok(records)` with a vector, an iterator. A record that
/// may fail by itself, after others were handed out, comes from [`lazily`].
pub trait Decode<M>: Send {
    /// What comes out.
    type Record;

    /// The records of one message, in order, made one at a time so that a large message does not
    /// have to expand in memory. An `Err` ends the message: nothing after it is looked at.
    type Records: Iterator<Item = Result<Self::Record, BoxError>> + Send;

    /// The records of `message`.
    ///
    /// # Errors
    ///
    /// Whatever makes this one message impossible to read. Keep the payload out of the text: it
    /// goes to the log and into the error that ends a source.
    fn decode(&mut self, message: M) -> Result<Self::Records, BoxError>;
}

impl<M, F, I> Decode<M> for F
where
    F: FnMut(M) -> Result<I, BoxError> + Send,
    I: IntoIterator,
    I::IntoIter: Send,
{
    type Record = I::Item;
    type Records = Sound<I::IntoIter>;

    fn decode(&mut self, message: M) -> Result<Self::Records, BoxError> {
        self(message).map(|records| Sound(records.into_iter()))
    }
}

/// The records of a decoder that finds out at once whether it can read a message.
#[derive(Debug, Clone)]
pub struct Sound<I>(I);

impl<I: Iterator> Iterator for Sound<I> {
    type Item = Result<I::Item, BoxError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Ok)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// Makes a decoder of a closure whose records may fail one by one.
///
/// For messages that are read as they are handed out: a record is made when it is wanted, and what
/// is wrong further on in the message shows only then.
///
/// ```
/// use connector_core::{BoxError, decode::{Decode, lazily}};
///
/// let mut decoder = lazily(|message: &'static str| {
///     Ok(message.split(',').map(|part| Ok(part.parse::<u32>()?)))
/// });
/// let mut records = decoder.decode("3,4,five")?;
/// assert_eq!(records.next().transpose()?, Some(3));
/// assert_eq!(records.next().transpose()?, Some(4));
/// assert!(records.next().is_some_and(|record| record.is_err()));
/// # Ok::<(), BoxError>(())
/// ```
pub fn lazily<M, R, F, I>(decode: F) -> Lazily<F>
where
    F: FnMut(M) -> Result<I, BoxError> + Send,
    I: IntoIterator<Item = Result<R, BoxError>>,
{
    Lazily(decode)
}

/// The decoder that [`lazily`] makes.
#[derive(Clone)]
pub struct Lazily<F>(F);

impl<M, R, F, I> Decode<M> for Lazily<F>
where
    F: FnMut(M) -> Result<I, BoxError> + Send,
    I: IntoIterator<Item = Result<R, BoxError>>,
    I::IntoIter: Send,
{
    type Record = R;
    type Records = I::IntoIter;

    fn decode(&mut self, message: M) -> Result<Self::Records, BoxError> {
        (self.0)(message).map(IntoIterator::into_iter)
    }
}

impl<F> fmt::Debug for Lazily<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lazily").finish_non_exhaustive()
    }
}
