//! Records by their id, in the order of acceptance.

use std::collections::{BTreeMap, VecDeque};

use super::{Record, RecordId};

/// Places without a record that are kept for each one with one, and besides: beyond it the oldest
/// records are kept apart, since they may stay for days while others come and go.
const EMPTY_PER_RECORD: usize = 3;
const EMPTY: usize = 1_024;

/// A map whose keys ascend. Nearly all records leave soon and about in the order in which they came,
/// so that a record's place follows from its id.
#[derive(Debug)]
pub(super) struct Records {
    /// Those that are older than the first place.
    old: BTreeMap<RecordId, Record>,
    places: VecDeque<Option<Record>>,
    /// The id of the first place, which is never empty.
    first: u64,
    len: usize,
}

impl Records {
    pub(super) const fn new() -> Self {
        Self {
            old: BTreeMap::new(),
            places: VecDeque::new(),
            first: 0,
            len: 0,
        }
    }

    /// Adds a record whose id is above all that were ever added.
    pub(super) fn push(&mut self, id: RecordId, record: Record) {
        if self.places.is_empty() {
            self.first = id.0;
        }
        while self.first + self.places.len() as u64 != id.0 {
            self.places.push_back(None);
        }
        self.places.push_back(Some(record));
        self.len += 1;
        self.set_old_apart();
    }

    pub(super) fn get(&self, id: RecordId) -> Option<&Record> {
        match self.place(id) {
            Some(at) => self.places.get(at)?.as_ref(),
            None => self.old.get(&id),
        }
    }

    pub(super) fn get_mut(&mut self, id: RecordId) -> Option<&mut Record> {
        match self.place(id) {
            Some(at) => self.places.get_mut(at)?.as_mut(),
            None => self.old.get_mut(&id),
        }
    }

    pub(super) fn remove(&mut self, id: RecordId) -> Option<Record> {
        let record = match self.place(id) {
            Some(at) => self.places.get_mut(at)?.take(),
            None => self.old.remove(&id),
        }?;
        self.len -= 1;
        self.leave_empty();
        Some(record)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (RecordId, &Record)> {
        let old = self.old.iter().map(|(id, record)| (*id, record));
        let places = (self.first..).zip(&self.places);
        old.chain(places.filter_map(|(id, place)| Some((RecordId(id), place.as_ref()?))))
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn values(&self) -> impl Iterator<Item = &Record> {
        self.iter().map(|(_, record)| record)
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn clear(&mut self) {
        self.old.clear();
        self.places.clear();
        self.len = 0;
    }

    /// The place of an id, unless it is older than all places.
    fn place(&self, id: RecordId) -> Option<usize> {
        usize::try_from(id.0.checked_sub(self.first)?).ok()
    }

    fn leave_empty(&mut self) {
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first += 1;
        }
    }

    fn set_old_apart(&mut self) {
        while self.places.len() > EMPTY + EMPTY_PER_RECORD.saturating_mul(self.len)
            && let Some(Some(record)) = self.places.pop_front()
        {
            self.old.insert(RecordId(self.first), record);
            self.first += 1;
            self.leave_empty();
        }
    }
}

#[cfg(test)]
mod tests {
    use connector_core::ledger::Ledger;
    use connector_core::{Limits, RejectedReason};
    use proptest::prelude::*;

    use super::super::{Rejection, Target};
    use super::*;

    fn record(bytes: usize) -> Record {
        let rejection = Rejection {
            destination: String::new(),
            reason: RejectedReason::Limit,
            source: None,
        };
        let place = Ledger::new().add(());
        let held = Limits::new(1, bytes);
        Record::new(place, held, Target::Rejected(rejection), false)
    }

    fn ids(records: &Records) -> Vec<u64> {
        records.iter().map(|(id, _)| id.0).collect()
    }

    proptest! {
        #[test]
        fn it_holds_what_a_map_would(
            ops in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..200),
        ) {
            let mut records = Records::new();
            let mut model = BTreeMap::new();
            for (number, (adds, which)) in (0_usize..).zip(ops) {
                if adds || model.is_empty() {
                    records.push(RecordId(number as u64), record(number));
                    model.insert(number as u64, number);
                } else {
                    let id = *model.keys().nth(which.index(model.len())).unwrap();
                    let bytes = records.remove(RecordId(id)).map(|record| record.held.bytes);
                    prop_assert_eq!(bytes, model.remove(&id));
                    prop_assert!(records.remove(RecordId(id)).is_none());
                }
                prop_assert_eq!(records.len(), model.len());
                prop_assert_eq!(ids(&records), model.keys().copied().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_record_that_stays_does_not_keep_the_places_of_those_that_leave() {
        let mut records = Records::new();
        records.push(RecordId(0), record(7));
        for id in 1..100_000 {
            records.push(RecordId(id), record(1));
            assert!(records.remove(RecordId(id)).is_some());
            assert!(records.places.len() <= EMPTY + 2 * EMPTY_PER_RECORD);
        }
        assert_eq!(ids(&records), [0]);
        assert_eq!(records.get(RecordId(0)).map(|old| old.held.bytes), Some(7));
        assert!(records.get_mut(RecordId(0)).is_some());
        assert!(records.remove(RecordId(0)).is_some());
        assert_eq!(records.len(), 0);
        records.push(RecordId(100_000), record(1));
        assert_eq!(ids(&records), [100_000]);
    }
}
