//! One incarnation of the source: the machine, the handle's queue, the lines as it sees them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use connector_core::{Committed, Epoch, ledger::CommitId};
use gcp_emulator::pubsub::proto::StreamingPullResponse;
use gcp_wire::{PulledResponse, SubscriptionName};
use prost::Message as _;

use crate::{
    delivery::DeliveryId,
    handout::HandOut,
    machine::{CallId, Machine, MessageKey, Pulled, Restoration, SettleId, StreamId},
    settings::Settings,
};

use super::{
    decoding::{InHand, Unfinished},
    order::AllProgress,
    server::SUBSCRIPTION,
};

/// A stream as the client sees it.
#[derive(Default)]
pub(super) struct Reader {
    /// Responses, with the numbers that were not acknowledged when they were sent.
    pub(super) inbox: VecDeque<(Box<StreamingPullResponse>, Vec<u64>)>,
    /// The last instant at which nothing was left to read.
    pub(super) drained: Duration,
    pub(super) opened: bool,
}

/// What a host knows of a message it was handed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) number: u64,
}

/// One incarnation.
pub(super) struct Client {
    pub(super) incarnation: u32,
    pub(super) born: Duration,
    pub(super) machine: Machine,
    pub(super) out: HandOut,
    pub(super) readers: BTreeMap<StreamId, Reader>,
    /// Nothing of the process runs before this time.
    pub(super) suspended_until: Duration,
    /// The host polls nothing before this time.
    pub(super) still_until: Duration,
    pub(super) closing: bool,
    /// The host wants nothing for now.
    pub(super) paused: bool,
    /// What the restored state covers.
    pub(super) restored: BTreeSet<u64>,
    /// What the restored state names.
    pub(super) named: BTreeSet<u64>,
    /// Extensions under way, and the messages of which one was confirmed.
    pub(super) extending: BTreeMap<CallId, Vec<String>>,
    pub(super) confirmed: BTreeSet<String>,
    /// What this incarnation has asked the server to acknowledge.
    pub(super) acknowledged: BTreeSet<u64>,
    /// What was published by the time of the restored cut lies below this number.
    pub(super) published: u64,
    /// Ids that left the seen window early, as far as that was counted here.
    pub(super) overflowed: u64,
    /// How far each key has come out in the line of incarnations.
    pub(super) progress: AllProgress,
    /// What was handed out in the line of incarnations, up to now.
    pub(super) covered: BTreeSet<u64>,
    /// The message whose records are being handed out.
    pub(super) in_hand: Option<InHand>,
    /// The messages that were handed out in part in the line of incarnations, and not whole since.
    pub(super) unfinished: BTreeMap<u64, Unfinished>,
    /// Handed out since the last cut.
    pub(super) open: BTreeMap<DeliveryId, Held>,
    /// Sealed and not committed.
    pub(super) sealed: BTreeMap<Epoch, Vec<Held>>,
    /// What the host gave back and has not got again.
    pub(super) given_back: BTreeSet<u64>,
    /// Committed in this incarnation.
    pub(super) committed: BTreeSet<u64>,
    pub(super) commits: BTreeMap<CommitId, Vec<u64>>,
    pub(super) resolved: BTreeSet<CommitId>,
    /// Commits whose receipt failed.
    pub(super) failed: BTreeSet<CommitId>,
    pub(super) restored_verdict: Option<Committed>,
    pub(super) settles: BTreeSet<SettleId>,
    pub(super) last_commit: Option<Epoch>,
    pub(super) epoch: Epoch,
    pub(super) next_checkpoint: Duration,
    /// The message of each ack id that was received, and the newest ack id of each message.
    pub(super) messages: BTreeMap<String, String>,
    pub(super) newest: BTreeMap<String, String>,
}

impl Client {
    pub(super) fn new(
        incarnation: u32,
        now: Duration,
        at: Instant,
        settings: Settings,
        restoration: Restoration,
        restored: BTreeSet<u64>,
    ) -> Self {
        let epoch = restoration.epoch.unwrap_or_default();
        let machine = Machine::new(
            at,
            SUBSCRIPTION.parse().unwrap(),
            "simulated".into(),
            settings,
            restoration,
        );
        Self {
            incarnation,
            born: now,
            machine,
            out: HandOut::default(),
            readers: BTreeMap::new(),
            suspended_until: Duration::ZERO,
            still_until: Duration::ZERO,
            closing: false,
            paused: false,
            covered: restored.clone(),
            restored,
            named: BTreeSet::new(),
            extending: BTreeMap::new(),
            confirmed: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            published: 0,
            overflowed: 0,
            progress: AllProgress::new(),
            in_hand: None,
            unfinished: BTreeMap::new(),
            open: BTreeMap::new(),
            sealed: BTreeMap::new(),
            given_back: BTreeSet::new(),
            committed: BTreeSet::new(),
            commits: BTreeMap::new(),
            resolved: BTreeSet::new(),
            failed: BTreeSet::new(),
            restored_verdict: None,
            settles: BTreeSet::new(),
            last_commit: None,
            epoch,
            next_checkpoint: now,
            messages: BTreeMap::new(),
            newest: BTreeMap::new(),
        }
    }

    /// What is settled leaves its epoch. It was handed out twice if an earlier delivery of it was
    /// held for too long: that one's epoch keeps it.
    pub(super) fn give_up(&mut self, delivery: DeliveryId, held: Held) {
        self.open.remove(&delivery);
        let elsewhere = self.restored.contains(&held.number)
            || self.committed.contains(&held.number)
            || self.holds(held.number);
        if !elsewhere {
            self.covered.remove(&held.number);
        }
    }

    /// Whether a message is handed out and its epoch is not committed.
    pub(super) fn holds(&self, number: u64) -> bool {
        let held = |held: &Held| held.number == number;
        self.open.values().any(held) || self.sealed.values().flatten().any(held)
    }

    /// A commit resolved. Each does so once.
    pub(super) fn resolve(&mut self, commit: CommitId, committed: Committed) -> Result<(), String> {
        if !self.resolved.insert(commit) {
            return Err(format!("{commit:?} resolved twice"));
        }
        let Some(numbers) = self.commits.remove(&commit) else {
            return Err(format!("{commit:?} resolved and was never asked for"));
        };
        if committed.total() < numbers.len() {
            return Err(format!(
                "{commit:?} covers {} and has verdicts for {}",
                numbers.len(),
                committed.total()
            ));
        }
        Ok(())
    }

    /// A commit's receipt failed. Each does so at most once, and before its commit has a result.
    pub(super) fn fail(&mut self, commit: CommitId) -> Result<(), String> {
        if !self.commits.contains_key(&commit) {
            return Err(format!("{commit:?} failed and has a result already"));
        }
        if !self.failed.insert(commit) {
            return Err(format!("{commit:?} failed twice"));
        }
        Ok(())
    }

    /// What restored states name has its verdicts. That is told at most once.
    pub(super) fn resolve_restored(&mut self, committed: Committed) -> Result<(), String> {
        if let Some(before) = self.restored_verdict.replace(committed) {
            return Err(format!("the restore resolved twice, first with {before:?}"));
        }
        Ok(())
    }

    /// Whether all that a finished source holds is gone.
    pub(super) fn is_drained(&self, now: Instant) -> bool {
        let stats = self.machine.stats(now);
        stats.leased == 0
            && stats.buffered == 0
            && self.commits.is_empty()
            && self.settles.is_empty()
            && self.open.is_empty()
            && self.sealed.is_empty()
    }
}

/// Takes a response of the one subscription apart as the driver does.
pub(super) fn take_apart(response: &StreamingPullResponse, leased_since: Instant) -> Pulled {
    let subscription = SUBSCRIPTION.parse().unwrap();
    take_apart_of(&subscription, response, leased_since)
}

/// Takes a response apart as the driver does, by way of its bytes.
pub(super) fn take_apart_of(
    subscription: &SubscriptionName,
    response: &StreamingPullResponse,
    leased_since: Instant,
) -> Pulled {
    let response = PulledResponse::decode(response.encode_to_vec().into());
    let response = response.expect("the server encodes well");
    let all = 0..response.len();
    crate::driver::take_apart(subscription, &response, all, leased_since)
}

/// Another key, for a planted bug.
pub(super) fn strange_key(key: &MessageKey, salt: u64) -> MessageKey {
    match key {
        MessageKey::Number(number) => MessageKey::Number(number ^ (salt << 56) ^ (1 << 63)),
        MessageKey::Text(text) => MessageKey::Text(format!("{text}-{salt}").into()),
    }
}
