//! Settings of the staged mode.

use connector_core::Limits;

use super::SinkBuilder;
use crate::{Delivery, settings::IdentityAttributes};

impl<R> SinkBuilder<R> {
    /// When messages leave: as they come, or with the host's commit. Default [`Delivery::Flush`].
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.settings.delivery = delivery;
        self
    }

    /// What a staged sink may hold for commits to come and for those under way, in messages and in
    /// encoded bytes. Default 10,000 messages and 64 MiB.
    ///
    /// At half of it the sink asks for a checkpoint
    /// ([`Room::CheckpointWanted`](connector_core::host::Room::CheckpointWanted)); with a full one it
    /// has no room for records, while snapshots go on; so it should hold twice what comes in during a
    /// checkpoint's interval. It is also the size of the largest state. A full stage without a
    /// snapshot for [`progress_timeout`](Self::progress_timeout) ends the sink. While a large commit
    /// leaves, its messages are in memory twice. Only with [`Delivery::Staged`], where it takes the
    /// place of [`limits`](Self::limits).
    pub fn stage(mut self, limits: Limits) -> Self {
        self.stage = Some(limits);
        self
    }

    /// How many refused messages a staged sink may keep aside, in messages and in encoded bytes.
    /// Default 1,000 messages and 64 MiB.
    ///
    /// They are part of every state, so this bounds it together with [`stage`](Self::stage). One more
    /// ends the sink, and comes again after a restore. Only with [`Delivery::Staged`]. See
    /// [`quarantined`](crate::PubsubSink::quarantined).
    pub fn quarantine(mut self, limits: Limits) -> Self {
        self.quarantine = Some(limits);
        self
    }

    /// Puts each staged message's [`Identity`](crate::Identity) into two attributes of these names:
    /// the incarnation as 32 hexadecimal digits, the sequence in decimal. Default: none.
    ///
    /// For consumers that must not see a message twice: one that was published again after a crash
    /// has the same two values. A record's own attributes of these names are replaced. Only with
    /// [`Delivery::Staged`], since a flushing sink does not know a message again after a crash.
    pub fn identity_attributes(
        mut self,
        incarnation: impl Into<String>,
        sequence: impl Into<String>,
    ) -> Self {
        self.identity_attributes = Some(IdentityAttributes {
            incarnation: incarnation.into(),
            sequence: sequence.into(),
        });
        self
    }
}
