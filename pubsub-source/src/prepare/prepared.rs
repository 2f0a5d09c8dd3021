//! What a start answers: readers that may begin.

mod body;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use connector_core::{StateError, Versioned};

use crate::{
    builder::SourceBuilder,
    decode::DecodeFailure,
    plan::{PlanError, SplitPlan},
    source::PubsubSource,
    start::SeekId,
};

/// A job whose start is over: its subscriptions are there, checked, and at the start position.
///
/// Readers built from it neither check nor seek. It is plain data (`Serialize`, `Deserialize`), to
/// be handed to the processes of the job, and to replicas that are added later. It holds neither
/// endpoint nor credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Prepared {
    plan: SplitPlan,
    instance: Arc<str>,
    sought: Option<SeekId>,
    decode_failure: DecodeFailure,
}

impl Prepared {
    pub(crate) fn new(
        plan: SplitPlan,
        instance: Arc<str>,
        sought: Option<SeekId>,
        decode_failure: DecodeFailure,
    ) -> Self {
        Self {
            plan,
            instance,
            sought,
            decode_failure,
        }
    }

    /// The plan that was prepared. Any number of readers may come of it, see
    /// [`reader`](Self::reader).
    #[must_use]
    pub fn plan(&self) -> &SplitPlan {
        &self.plan
    }

    /// Begins to build reader `reader` of `readers`, counted from 0; `None` if there is nothing for it
    /// to read, which only an ordered plan does.
    ///
    /// The plan is made anew for `readers` of them, so a job may come back with more or fewer, all
    /// with the same `readers`. Give each of them the states of **all** readers of the last run
    /// ([`SourceBuilder::restore`]): a message may come to any of them. What was saved before the
    /// subscriptions were last sought is not used to recognise messages, since the seek
    /// brings them back on purpose. Readers of an ordered plan keep the order of keys
    /// ([`SourceBuilder::message_ordering`]).
    ///
    /// # Errors
    ///
    /// [`PlanError::NoReader`] and [`PlanError::NoSuchReader`].
    pub fn reader(
        &self,
        reader: usize,
        readers: usize,
    ) -> Result<Option<SourceBuilder>, PlanError> {
        let splits = self.plan.resized(readers)?.reader(reader)?;
        if splits.is_empty() {
            return Ok(None);
        }
        let builder = PubsubSource::builder_of(splits)
            .instance(&*self.instance)
            .message_ordering(self.plan.is_ordered())
            .decode_failure(self.decode_failure)
            .sought(self.sought);
        Ok(Some(builder))
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("instance", &self.instance)
            .field("plan", &self.plan)
            .field("sought", &self.sought.is_some())
            .field("decode_failure", &self.decode_failure)
            .finish()
    }
}

impl Versioned for Prepared {
    const CONNECTOR: &'static str = "pubsub-source-prepared";
    const VERSION: u32 = 1;

    fn instance(&self) -> &str {
        &self.instance
    }

    fn encode_body(&self) -> Bytes {
        body::encode(self)
    }

    fn decode_body(version: u32, instance: &str, body: Bytes) -> Result<Self, StateError> {
        if version != Self::VERSION {
            return Err(StateError::unknown_version::<Self>(version));
        }
        body::decode(instance, body)
            .map_err(|problem| StateError::damaged::<Self>(version, problem))
    }
}

connector_core::serde_through_envelope!(Prepared);
