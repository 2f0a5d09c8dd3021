//! What really happened, and what may not.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use connector_core::{Epoch, Versioned};
use gcp_emulator::pubsub::proto::PubsubMessage;
use prost::Message as _;

use super::Violation;
use crate::{SinkState, message};

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The service stores it.
    Good,
    /// The service refuses it.
    Poison,
    /// It breaks a limit, which the sink sees by itself.
    Broken,
}

/// A record of the source. Its number is its position there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) topic: usize,
    pub(super) key: &'static str,
    pub(super) kind: Kind,
}

/// A checkpoint on its way to be durable, or there.
#[derive(Debug, Clone)]
pub(super) struct Saved {
    pub(super) epoch: Epoch,
    /// Records before this one are covered.
    pub(super) position: usize,
    pub(super) state: Bytes,
    pub(super) settled: bool,
}

impl Saved {
    pub(super) fn open(&self) -> SinkState {
        let version = SinkState::VERSION;
        SinkState::decode_body(version, "0", self.state.clone()).expect("what was saved is read")
    }

    /// The numbers that the state names as messages to be published.
    pub(super) fn named(&self) -> BTreeSet<usize> {
        let state = self.open();
        let frames = state.messages_named().filter_map(|staged| staged.frame());
        frames
            .map(|frame| number(message::inside(&frame)))
            .collect()
    }

    pub(super) fn kept_aside(&self) -> BTreeSet<usize> {
        let state = self.open();
        let kept = state.kept_aside().iter();
        kept.map(|kept| number(kept.message.clone())).collect()
    }
}

/// The number of an encoded message.
pub(super) fn number(message: Bytes) -> usize {
    number_of(&PubsubMessage::decode(message).unwrap())
}

pub(super) fn number_of(message: &PubsubMessage) -> usize {
    let bytes = message.data.as_ref().try_into().unwrap();
    usize::try_from(u64::from_be_bytes(bytes)).unwrap()
}

/// All that an observer of everything knows.
#[derive(Default)]
pub(super) struct Truth {
    pub(super) records: Vec<Record>,
    pub(super) durable: Vec<Saved>,
    /// How often each record was stored.
    pub(super) stored: BTreeMap<usize, u32>,
    /// How often each record may be stored once more.
    pub(super) excuses: BTreeMap<usize, u32>,
    /// What the failure handler made durable.
    pub(super) handled: BTreeSet<usize>,
    /// What the operator dropped from quarantine.
    pub(super) discarded: BTreeSet<usize>,
    /// Of each topic and key, how many of its good records the next may go up to.
    reached: BTreeMap<(usize, &'static str), usize>,
}

impl Truth {
    /// The newest checkpoint that was ever durable.
    pub(super) fn newest(&self) -> Option<&Saved> {
        self.durable.iter().max_by_key(|saved| saved.epoch)
    }

    pub(super) fn newest_position(&self) -> usize {
        self.newest().map_or(0, |saved| saved.position)
    }

    pub(super) fn excuse(&mut self, numbers: impl IntoIterator<Item = usize>) {
        for number in numbers {
            *self.excuses.entry(number).or_default() += 1;
        }
    }

    /// A record is stored. `awaited` says that the client which sent it waits for the answer.
    pub(super) fn store(
        &mut self,
        number: usize,
        staged: bool,
        awaited: bool,
    ) -> Result<(), Violation> {
        if staged && number >= self.newest_position() {
            return Err(format!(
                "record {number} is visible and nothing durable covers it"
            ));
        }
        let times = self.stored.entry(number).or_default();
        *times += 1;
        let excused = self.excuses.get(&number).copied().unwrap_or_default();
        if *times > 1 + excused {
            return Err(format!(
                "record {number} was stored {times} times, with {excused} excuses"
            ));
        }
        // What is evaluated after its client gave up comes whenever it likes.
        if awaited { self.follow(number) } else { Ok(()) }
    }

    /// Each key's log goes up without a gap, or goes back to something stored before.
    fn follow(&mut self, number: usize) -> Result<(), Violation> {
        let Record { topic, key, .. } = self.records[number];
        if key.is_empty() {
            return Ok(());
        }
        let at = self.of_key(topic, key).position(|other| other == number);
        let at = at.expect("it is good");
        let reached = self.reached.entry((topic, key)).or_default();
        if at > *reached {
            return Err(format!("record {number} of key {key} overtook another"));
        }
        *reached = at + 1;
        Ok(())
    }

    fn of_key(&self, topic: usize, key: &str) -> impl Iterator<Item = usize> {
        let of_it = move |record: &Record| {
            record.topic == topic && record.key == key && record.kind == Kind::Good
        };
        let records = self.records.iter().enumerate();
        records.filter_map(move |(number, record)| of_it(record).then_some(number))
    }

    /// Whether a record that a checkpoint covers is where it may be.
    fn is_kept(&self, number: usize, saved: Option<&(BTreeSet<usize>, BTreeSet<usize>)>) -> bool {
        let named = |number| saved.is_some_and(|(named, _)| named.contains(number));
        let aside = |number| saved.is_some_and(|(_, aside)| aside.contains(number));
        let dealt_with = self.handled.contains(&number) || self.discarded.contains(&number);
        match self.records[number].kind {
            Kind::Good => self.stored.contains_key(&number) || named(&number),
            Kind::Poison => dealt_with || named(&number) || aside(&number),
            Kind::Broken => self.handled.contains(&number),
        }
    }

    /// A snapshot whose receipt is Ok covers everything before its cut.
    pub(super) fn check_covered(&self, saved: &Saved) -> Result<(), Violation> {
        let state = (saved.named(), saved.kept_aside());
        let lost = (0..saved.position).find(|number| !self.is_kept(*number, Some(&state)));
        match lost {
            None => Ok(()),
            Some(number) => Err(format!(
                "the snapshot of epoch {} does not cover record {number}, {:?}",
                saved.epoch, self.records[number]
            )),
        }
    }

    /// Everything is where it belongs, in the end. `aside` is in quarantine.
    pub(super) fn check_end(&self, aside: BTreeSet<usize>) -> Result<(), Violation> {
        let end = (BTreeSet::new(), aside);
        for number in 0..self.records.len() {
            if !self.is_kept(number, Some(&end)) {
                let record = self.records[number];
                return Err(format!("record {number} is lost: {record:?}"));
            }
        }
        Ok(())
    }
}
