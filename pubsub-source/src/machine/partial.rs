//! Messages of which some records were handed out, and not all.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use super::{Machine, MessageKey};
use crate::{decode::Tally, delivery::DeliveryId, message::Message};

/// Unfinished messages that are remembered at most: the one in hand, and those whose lease ended, or
/// that were given back, in the middle. Each takes some 100 bytes here and 20 in the state.
const MOST: usize = 10_000;

/// How many records of which deliveries were handed out before.
pub(crate) type Begun = BTreeMap<DeliveryId, u64>;

/// An unfinished message, as a saved state names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfinished {
    pub(crate) key: MessageKey,
    /// When it was published, in nanoseconds since the Unix epoch: another message that happens to
    /// have the same id was published at another time.
    pub(crate) published: i64,
    /// Records handed out, from the first on.
    pub(crate) records: u64,
    /// The open-stream time for which it is still remembered.
    pub(crate) remaining: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    published: i64,
    records: u64,
    ends: Duration,
}

/// How far each unfinished message was handed out.
///
/// Its redelivery skips so many records. What is not needed any more, because another reader got the
/// message, leaves with time: the clock is that of the seen window, which runs while a stream is
/// open, and goes in as `time`.
#[derive(Debug, Default)]
pub(super) struct Partials {
    entries: BTreeMap<MessageKey, Entry>,
    ends: BTreeSet<(Duration, MessageKey)>,
    overflowed: u64,
}

impl Partials {
    /// Remembers how far a message was handed out. Never less than before: the states of two
    /// readers may name it, and the records that either handed out are out.
    pub(super) fn set(&mut self, found: Unfinished, time: Duration) {
        let Unfinished {
            key,
            published,
            records,
            remaining,
        } = found;
        let mut entry = Entry {
            published,
            records,
            ends: time + remaining,
        };
        if let Some(before) = self.remove(&key)
            && before.published == published
        {
            entry.records = entry.records.max(before.records);
            entry.ends = entry.ends.max(before.ends);
        }
        self.ends.insert((entry.ends, key.clone()));
        self.entries.insert(key, entry);
        while self.entries.len() > MOST
            && let Some((_, first)) = self.ends.pop_first()
        {
            self.entries.remove(&first);
            self.overflowed += 1;
        }
    }

    /// The records of a message that were handed out.
    pub(super) fn records(&self, key: &MessageKey, published: i64, time: Duration) -> u64 {
        let entry = self.entries.get(key);
        let entry = entry.filter(|entry| entry.published == published && entry.ends > time);
        entry.map_or(0, |entry| entry.records)
    }

    /// A message was handed out whole.
    pub(super) fn finish(&mut self, key: &MessageKey) {
        self.remove(key);
    }

    fn remove(&mut self, key: &MessageKey) -> Option<Entry> {
        let (key, entry) = self.entries.remove_entry(key)?;
        self.ends.remove(&(entry.ends, key));
        Some(entry)
    }

    /// Drops what is remembered for long enough.
    pub(super) fn expire(&mut self, time: Duration) {
        while let Some((ends, _)) = self.ends.first()
            && *ends <= time
            && let Some((_, key)) = self.ends.pop_first()
        {
            self.entries.remove(&key);
        }
    }

    /// What a saved state names.
    pub(super) fn view(&self, time: Duration) -> Vec<Unfinished> {
        let view = |(key, entry): (&MessageKey, &Entry)| Unfinished {
            key: key.clone(),
            published: entry.published,
            records: entry.records,
            remaining: entry.ends.saturating_sub(time),
        };
        self.entries.iter().map(view).collect()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.ends.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Messages that had to be forgotten early because there were too many.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Checks what only this type can break.
    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.entries.len(), self.ends.len());
        for (key, entry) in &self.entries {
            assert!(self.ends.contains(&(entry.ends, key.clone())));
            assert!(entry.records > 0, "what was not begun is not unfinished");
        }
        assert!(self.entries.len() <= MOST);
    }
}

impl Machine {
    /// So many records of a message that is buffered, and stays so, were handed out.
    pub(crate) fn hand_out_part(
        &mut self,
        now: Instant,
        key: &MessageKey,
        published: i64,
        records: u64,
    ) {
        let found = Unfinished {
            key: key.clone(),
            published,
            records,
            remaining: self.seen_lifetime(),
        };
        self.partials.set(found, self.seen.time(now));
    }

    /// Counts what the handle decoded.
    pub(crate) fn count_decoding(&mut self, tally: Tally) {
        tally.add_to(&mut self.stats);
    }

    pub(super) fn restore_unfinished(&mut self, now: Instant, restored: Vec<Unfinished>) {
        let (lifetime, time) = (self.seen_lifetime(), self.seen.time(now));
        for mut unfinished in restored {
            unfinished.remaining = unfinished.remaining.min(lifetime);
            self.partials.set(unfinished, time);
        }
    }

    /// How far each of these messages was handed out before.
    pub(crate) fn begun(&mut self, now: Instant, messages: &[Message]) -> Begun {
        let time = self.seen.time(now);
        self.partials.expire(time);
        if self.partials.is_empty() {
            return Begun::new();
        }
        let partials = &self.partials;
        let begun = messages.iter().filter_map(|message| {
            let key = MessageKey::of(message.id.bytes());
            let records = partials.records(&key, message.published_nanos(), time);
            (records > 0).then_some((message.delivery, records))
        });
        begun.collect()
    }

    /// The unfinished messages that a state names.
    pub(super) fn unfinished_messages(&mut self, now: Instant) -> Vec<Unfinished> {
        let time = self.seen.time(now);
        self.partials.expire(time);
        self.partials.view(time)
    }

    /// A message that was handed out in part has no record left.
    pub(crate) fn finish_part(&mut self, key: &MessageKey) {
        self.partials.finish(key);
    }

    /// A delivery is handed out whole: nothing of its message is left to skip.
    pub(super) fn finish_whole(&mut self, delivery: DeliveryId) {
        if self.partials.is_empty() {
            return;
        }
        let id = self.deliveries.current(delivery);
        if let Some(key) = self.deliveries.key(id).cloned() {
            self.partials.finish(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn unfinished(number: u64, published: i64, records: u64) -> Unfinished {
        Unfinished {
            key: MessageKey::Number(number),
            published,
            records,
            remaining: HOUR,
        }
    }

    fn records(partials: &Partials, number: u64, published: i64, time: Duration) -> u64 {
        partials.records(&MessageKey::Number(number), published, time)
    }

    #[test]
    fn the_records_that_either_of_two_readers_handed_out_are_out() {
        for counts in [[2, 4], [4, 2]] {
            let mut partials = Partials::default();
            for count in counts {
                partials.set(unfinished(1, 7, count), Duration::ZERO);
            }
            assert_eq!(records(&partials, 1, 7, Duration::ZERO), 4);
            partials.check_invariants();
        }
    }

    #[test]
    fn another_message_with_the_same_id_is_handed_out_from_its_first_record() {
        let mut partials = Partials::default();
        partials.set(unfinished(1, 7, 2), Duration::ZERO);
        assert_eq!(records(&partials, 1, 8, Duration::ZERO), 0);
        partials.set(unfinished(1, 8, 1), Duration::ZERO);
        assert_eq!(records(&partials, 1, 8, Duration::ZERO), 1);
        assert_eq!(records(&partials, 1, 7, Duration::ZERO), 0);
    }

    #[test]
    fn what_does_not_come_again_is_forgotten_with_open_stream_time() {
        let mut partials = Partials::default();
        partials.set(unfinished(1, 7, 2), Duration::ZERO);
        partials.expire(HOUR - Duration::from_nanos(1));
        assert_eq!(partials.view(HOUR / 2)[0].remaining, HOUR / 2);
        partials.expire(HOUR);
        assert!(partials.is_empty());
        partials.check_invariants();
    }

    #[test]
    fn too_many_push_out_those_that_would_leave_first() {
        let mut partials = Partials::default();
        for number in 0..=MOST as u64 {
            partials.set(unfinished(number, 7, 1), Duration::from_nanos(number));
        }
        assert_eq!((partials.len(), partials.overflowed()), (MOST, 1));
        assert_eq!(records(&partials, 0, 7, Duration::ZERO), 0);
        assert_eq!(records(&partials, 1, 7, Duration::ZERO), 1);
        partials.check_invariants();
    }

    proptest! {
        #[test]
        fn what_is_unfinished_is_a_map_from_messages_to_their_records(
            steps in prop::collection::vec((0u64..8, 0i64..3, 0u64..5), 0..60)
        ) {
            let mut partials = Partials::default();
            let mut model = BTreeMap::new();
            for (number, published, count) in steps {
                if count == 0 {
                    partials.finish(&MessageKey::Number(number));
                    model.remove(&number);
                } else {
                    partials.set(unfinished(number, published, count), Duration::ZERO);
                    let before = model.get(&number).filter(|(at, _)| *at == published);
                    let most = before.map_or(count, |(_, before)| count.max(*before));
                    model.insert(number, (published, most));
                }
                partials.check_invariants();
                for number in 0..8 {
                    for published in 0..3 {
                        let expected = model.get(&number).filter(|(at, _)| *at == published);
                        let found = records(&partials, number, published, Duration::ZERO);
                        prop_assert_eq!(found, expected.map_or(0, |(_, count)| *count));
                    }
                }
            }
            let mut again = Partials::default();
            for found in partials.view(Duration::ZERO) {
                again.set(found, Duration::ZERO);
            }
            prop_assert_eq!(again.view(HOUR / 3), partials.view(HOUR / 3));
        }
    }
}
