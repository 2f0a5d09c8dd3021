//! Staged messages: in, out with their commit, and aside.

use std::{sync::Arc, time::Instant};

use bytes::BytesMut;
use connector_core::{
    CheckpointError, Epoch, Limits,
    ledger::{CommitId, Outcome, Place},
};
use gcp_wire::TopicName;

use super::{Effect, Machine, Notice, ReplyId, rejections::Rejection};
use crate::{
    PublishMessage, SinkError,
    excerpt::excerpt,
    message,
    staged::{Entry, Identity, Quarantined, Staged},
    state::Named,
};

/// Messages moved from the backlog into batches at a time: a request's worth, so that a large commit
/// holds the lock for no longer than a large batch does.
const MOVED_AT_ONCE: usize = 1_000;

impl Machine {
    pub(super) fn is_staged(&self) -> bool {
        self.settings.delivery.is_staged()
    }

    /// Holds a message for its commit.
    pub(super) fn stage(
        &mut self,
        topic: &TopicName,
        message: &PublishMessage,
        identity: Identity,
        reply: Option<ReplyId>,
    ) {
        let mut frame = BytesMut::with_capacity(message::frame_len(message));
        message::encode(message, &mut frame);
        let key = message.key().map(Arc::from);
        let staged = Staged::new(identity, topic.clone(), key, frame.freeze());
        let bytes = staged.bytes;
        let place = self.ledger.add(Entry::Staged(Arc::new(staged)));
        self.stage.add(place, bytes, reply);
    }

    /// What a snapshot's state names, right after its cut.
    pub(super) fn named(&mut self, now: Instant, epoch: Epoch) -> Named {
        if !self.is_staged() {
            return Named::default();
        }
        self.stage.seal(epoch);
        self.quarantine.sealed(epoch);
        self.stage_full.progress(now);
        Named {
            read: Vec::new(),
            cut: self.ledger.view(),
            quarantined: self.quarantine.kept().to_vec(),
        }
    }

    /// Everything up to `epoch` is durable at the host.
    pub(crate) fn commit(
        &mut self,
        now: Instant,
        epoch: Epoch,
    ) -> Result<CommitId, CheckpointError> {
        let commit = self.ledger.commit(epoch)?;
        self.commits.insert(commit.id, epoch);
        if self.is_staged() {
            self.stage.commit(epoch);
            for place in self.quarantine.committed(epoch) {
                self.settle(place, Outcome::Retained);
            }
            for (place, entry) in commit.released.iter().flat_map(|segment| segment.iter()) {
                if let Entry::Staged(staged) = entry {
                    let is_used = || self.destinations.find(&staged.topic).is_some();
                    self.backlog.push(&staged.topic, place, is_used);
                }
            }
        }
        self.look_again = true;
        self.watch(now);
        Ok(commit.id)
    }

    /// Whether committed messages can be moved into batches.
    pub(super) fn can_move(&self) -> bool {
        self.backlog.can_move(self.destinations.has_room())
    }

    /// Moves committed messages into batches, for one topic.
    pub(super) fn move_backlog(&mut self, now: Instant) {
        let (room, destinations) = (self.destinations.has_room(), &self.destinations);
        let is_used = |topic: &TopicName| destinations.find(topic).is_some();
        let Some((topic, places)) = self.backlog.next(room, MOVED_AT_ONCE, is_used) else {
            return;
        };
        for place in places {
            let Some(staged) = self.staged_at(place) else {
                continue;
            };
            let Some(frame) = staged.frame() else {
                continue;
            };
            let reply = self.stage.take_reply(place);
            let key = staged.key.as_deref();
            self.batch(now, &topic, key, frame.len(), |open| {
                open.push_frame(place, &frame, reply);
            });
        }
    }

    /// The staged message at a place, while it has no verdict.
    pub(super) fn staged_at(&self, place: Place) -> Option<Arc<Staged>> {
        match self.ledger.get(place)? {
            Entry::Staged(staged) => Some(Arc::clone(staged)),
            Entry::Passing => None,
        }
    }

    /// Gives a record its verdict.
    pub(super) fn settle(&mut self, place: Place, outcome: Outcome) {
        if self.is_staged()
            && let Some(Entry::Staged(staged)) = self.ledger.get(place)
        {
            staged.let_go();
        }
        self.ledger.settle(place, outcome);
    }

    /// Keeps aside a message that was refused and that its handler will not take over. False when
    /// that ended the sink.
    pub(super) fn keep_aside(&mut self, staged: &Staged, rejection: &Rejection) -> bool {
        let rejected = &rejection.rejected;
        let topic = staged.topic.clone();
        if !self.quarantine.has_room() {
            let limits = self.quarantine.limits();
            self.fail(SinkError::QuarantineFull {
                items: limits.items,
                bytes: limits.bytes,
                topic,
                cause: rejected.source.clone(),
            });
            return false;
        }
        let reason = match &rejected.source {
            Some(source) => excerpt(&source.to_string()),
            None => format!("{:?}", rejected.reason),
        };
        let identity = staged.identity;
        self.quarantine.keep(
            rejection.place,
            Quarantined {
                identity,
                topic: topic.clone(),
                message: rejected.payload.clone().unwrap_or_default(),
                reason: reason.clone(),
            },
        );
        self.stage.quarantined();
        self.effects.push_back(Effect::Tell(Notice::Quarantined {
            topic,
            identity,
            reason,
        }));
        self.release(1, rejection.bytes);
        true
    }

    /// Whether the host should take a checkpoint now.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        self.is_staged() && !self.is_ended() && self.stage.wants_checkpoint(self.held)
    }

    /// The host was told that a checkpoint is wanted.
    pub(crate) fn checkpoint_asked(&mut self) {
        self.stage.asked();
    }

    /// What is kept aside.
    pub(crate) fn quarantined(&self) -> Vec<Arc<Quarantined>> {
        self.quarantine.kept().to_vec()
    }

    /// Drops messages from quarantine; answers how many.
    pub(crate) fn discard_quarantined(&mut self, which: impl Fn(Identity) -> bool) -> usize {
        if self.is_ended() {
            return 0;
        }
        self.quarantine.take(which).len()
    }

    /// Stages messages from quarantine again; answers what that takes of the budget.
    pub(crate) fn stage_quarantined(
        &mut self,
        now: Instant,
        which: impl Fn(Identity) -> bool,
    ) -> Limits {
        let mut staged = Limits::default();
        if self.is_ended() {
            return staged;
        }
        for kept in self.quarantine.take(which) {
            // Decoded when it was restored, or encoded by us.
            let read = Staged::read(kept.identity, kept.topic.clone(), &kept.message);
            let Ok(message) = read else {
                self.quarantine.put_back(kept);
                continue;
            };
            let bytes = message.bytes;
            let place = self.ledger.add(Entry::Staged(Arc::new(message)));
            self.stage.add(place, bytes, None);
            self.held.items += 1;
            self.held.bytes += bytes;
            staged.items += 1;
            staged.bytes += bytes;
        }
        self.watch(now);
        staged
    }

    /// Commits have waited for long enough for a state that names what is kept aside.
    pub(super) fn give_up_commits(&mut self, now: Instant) {
        let patience = self.settings.close_timeout;
        if self
            .quarantine
            .deadline(patience)
            .is_none_or(|deadline| deadline > now)
        {
            return;
        }
        let items = self.quarantine.owed();
        for (id, epoch) in std::mem::take(&mut self.commits) {
            let error = CheckpointError::Retained {
                epoch,
                items,
                after: patience,
            };
            self.effects.push_back(Effect::Committed(id, Err(error)));
        }
        self.watch(now);
    }
}
