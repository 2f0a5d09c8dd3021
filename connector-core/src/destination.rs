//! Where a record goes.

use crate::{BoxError, Cause};

/// Chooses the destination of each record, before the record is serialized.
///
/// Closures are resolvers: `|record: &Order| topics.get(&record.region).cloned()`. They may answer
/// the destination itself, an `Option` of it, or a `Result`.
pub trait DestinationResolver<R: ?Sized, D>: Send {
    /// The destination of `record`.
    fn resolve(&mut self, record: &R) -> Resolution<D>;
}

/// The answer of a [`DestinationResolver`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Resolution<D> {
    /// The record goes there.
    To(D),
    /// There is no destination. That is a mistake in the configuration, not in the record: it ends
    /// the sink and never reaches the failure handler, which could drop a whole stream.
    Nothing,
    /// The record itself names something that is no destination, for example a topic name that
    /// does not parse. That is this record's own failure, and goes to the failure handler.
    Invalid(Cause),
}

impl<D> From<D> for Resolution<D> {
    fn from(destination: D) -> Self {
        Self::To(destination)
    }
}

impl<D> From<Option<D>> for Resolution<D> {
    fn from(destination: Option<D>) -> Self {
        destination.map_or(Self::Nothing, Self::To)
    }
}

impl<D, E: Into<BoxError>> From<Result<D, E>> for Resolution<D> {
    fn from(destination: Result<D, E>) -> Self {
        match destination {
            Ok(destination) => Self::To(destination),
            Err(error) => Self::Invalid(Cause::from(error.into())),
        }
    }
}

impl<R, D, F, O> DestinationResolver<R, D> for F
where
    R: ?Sized,
    F: FnMut(&R) -> O + Send,
    O: Into<Resolution<D>>,
{
    fn resolve(&mut self, record: &R) -> Resolution<D> {
        self(record).into()
    }
}

/// Sends every record to one destination.
#[derive(Debug, Clone)]
pub struct Fixed<D>(D);

impl<D> Fixed<D> {
    /// A resolver that always answers `destination`.
    pub const fn new(destination: D) -> Self {
        Self(destination)
    }
}

impl<R: ?Sized, D: Clone + Send> DestinationResolver<R, D> for Fixed<D> {
    fn resolve(&mut self, _record: &R) -> Resolution<D> {
        Resolution::To(self.0.clone())
    }
}
