//! What becomes of a message that cannot be decoded.

use std::fmt;

/// What becomes of a message that cannot be decoded.
///
/// Records of it that were handed out before the fault was found stay handed out, in the epochs that
/// were open then. Failures beyond the first are logged at a bounded rate: the first ten, then
/// each time their number has doubled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeFailure {
    /// The source ends with [`SourceError::Decode`](crate::SourceError::Decode), which names the
    /// message and not its payload. The message is not acknowledged: it comes again, also to a
    /// source that is built from the last saved state.
    #[default]
    Fail,
    /// The message is part of the open epoch, as if it had no record beyond the fault, and is
    /// acknowledged by that epoch's commit. Counted in
    /// [`Stats::decode_dropped`](crate::Stats::decode_dropped), and logged.
    Drop,
    /// The message is given back at once, so that the subscription's dead-letter policy takes it
    /// after its attempts. Counted in [`Stats::decode_nacked`](crate::Stats::decode_nacked), and
    /// logged.
    ///
    /// Records that were handed out are not handed out again when it comes again. Without a
    /// dead-letter policy the message comes again for ever.
    Nack,
}

/// A message decodes to fewer records than were handed out of it.
///
/// Its decoder is not deterministic, or has changed since. What is missing cannot be told apart from
/// what was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the message decodes to {yielded} records, of which {handed_out} were handed out before; a decoder has to give the same records each time"
)]
#[non_exhaustive]
pub struct FewerRecords {
    /// Records that were handed out when the message was decoded before.
    pub handed_out: u64,
    /// Records it decodes to now.
    pub yielded: u64,
}

/// A message that was dropped or given back.
pub(super) struct Refused<'a> {
    pub(super) policy: DecodeFailure,
    pub(super) subscription: &'a str,
    pub(super) message: &'a str,
    pub(super) records: u64,
    pub(super) attempt: Option<u32>,
    /// How many there were, with this one.
    pub(super) failures: u64,
    pub(super) error: &'a (dyn std::error::Error + Send + Sync + 'static),
}

/// The failures that are logged one by one; after them each power of two.
const LOGGED: u64 = 10;

/// Tells of a message that was not handed out whole, at a bounded rate: a thousand bad messages a second
/// would fill a disk with the same line.
pub(super) fn tell(refused: &Refused<'_>) {
    let Refused {
        policy,
        subscription,
        message,
        records,
        attempt,
        failures,
        error,
    } = refused;
    if *failures > LOGGED && !failures.is_power_of_two() {
        return;
    }
    let error = Chain(*error);
    match policy {
        DecodeFailure::Drop => tracing::warn!(
            subscription,
            message,
            records,
            failures,
            %error,
            "A message cannot be decoded and is dropped: it is acknowledged with its epoch."
        ),
        DecodeFailure::Nack => tracing::warn!(
            subscription,
            message,
            records,
            attempt,
            failures,
            %error,
            "A message cannot be decoded and is given back; without a dead-letter policy on the subscription it comes again for ever."
        ),
        // Told by the error that ends the source.
        DecodeFailure::Fail => {}
    }
}

/// An error with its sources.
struct Chain<'a>(&'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}
