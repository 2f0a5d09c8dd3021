//! How a record becomes a message.

/// Any error, owned. What a closure's `?` turns errors into.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// Turns records into messages (or tasks).
///
/// Closures that answer `Result<Option<M>, BoxError>` are encoders. `Ok(None)` skips the record,
/// which is counted; `Err` is that record's own failure and goes to the failure handler.
pub trait Encode<R: ?Sized, M>: Send {
    /// The message for `record`, or `None` to skip it.
    ///
    /// # Errors
    ///
    /// Whatever makes this one record impossible to serialize.
    fn encode(&mut self, record: &R) -> Result<Option<M>, BoxError>;
}

impl<R, M, F> Encode<R, M> for F
where
    R: ?Sized,
    F: FnMut(&R) -> Result<Option<M>, BoxError> + Send,
{
    fn encode(&mut self, record: &R) -> Result<Option<M>, BoxError> {
        self(record)
    }
}
