//! What only the machine itself can break, checked after every step of a test.

use std::collections::{BTreeMap, BTreeSet};

use super::{DestinationId, Machine, batch::OpenBatch, order::LaneKey};

#[derive(Default, PartialEq, Debug)]
struct Sum {
    items: usize,
    bytes: usize,
}

impl Machine {
    pub(crate) fn check_invariants(&self) {
        self.destinations.check_invariants();
        self.requests.check_invariants();
        self.quarantine.check_invariants();
        self.ledger.check_invariants();
        if self.is_ended() {
            assert_eq!(self.held.items, 0, "an ended sink holds nothing");
            return;
        }
        self.each_record_is_in_one_place();
        self.whatever_may_leave_is_queued();
    }

    fn each_record_is_in_one_place(&self) {
        let mut held = Sum::default();
        let mut per_destination: BTreeMap<DestinationId, usize> = BTreeMap::new();
        let mut in_flight: BTreeMap<(DestinationId, LaneKey), usize> = BTreeMap::new();
        let mut verdicts: BTreeMap<(DestinationId, LaneKey), usize> = BTreeMap::new();
        for (id, destination) in self.destinations.iter() {
            for (_, lane) in destination.lanes.iter() {
                let open = lane.open.iter().map(|open| (open.len(), open.bytes()));
                let closed = lane
                    .closed
                    .iter()
                    .map(|batch| (batch.len(), batch.bytes(0..batch.len())));
                for (items, bytes) in open.chain(closed) {
                    assert!(items > 0, "an empty batch does not exist");
                    held.items += items;
                    held.bytes += bytes;
                    *per_destination.entry(id).or_default() += items;
                }
            }
        }
        for (_, request) in self.requests.iter() {
            let rest = request.runs.rest();
            held.items += rest.len();
            held.bytes += request.batch.bytes(rest.clone());
            *per_destination.entry(request.destination).or_default() += rest.len();
            *in_flight
                .entry((request.destination, request.lane.clone()))
                .or_default() += 1;
        }
        let mut waiting = Sum::default();
        for segment in self.ledger.view().segments() {
            for (place, _) in segment.iter() {
                if matches!(
                    self.ledger.standing(place),
                    connector_core::ledger::Standing::Sealed(_)
                ) && let Some(staged) = self.staged_at(place)
                {
                    waiting.items += 1;
                    waiting.bytes += staged.bytes;
                }
            }
        }
        let stage = self.stage.waiting();
        let open = self.stage.open_amount();
        let sealed = Sum {
            items: stage.items - open.items,
            bytes: stage.bytes - open.bytes,
        };
        assert_eq!(waiting, sealed, "the stage counts what is sealed");
        held.items += stage.items;
        held.bytes += stage.bytes;
        let leaving = self.backlog.places().chain(self.dismissed.places());
        for place in leaving {
            let staged = self
                .staged_at(place)
                .expect("what leaves the stage is staged");
            assert!(
                staged.frame().is_some(),
                "and has its bytes until its verdict"
            );
            held.items += 1;
            held.bytes += staged.bytes;
        }
        for rejection in self.rejections.iter() {
            held.items += 1;
            held.bytes += rejection.bytes;
            if let Some(id) = rejection.destination {
                *per_destination.entry(id).or_default() += 1;
                if rejection.key.is_some() {
                    *verdicts.entry((id, rejection.key.clone())).or_default() += 1;
                }
            }
        }
        let counted = Sum {
            items: self.held.items,
            bytes: self.held.bytes,
        };
        assert_eq!(held, counted, "the budget is the sum of what is held");
        assert_eq!(
            self.ledger.len(),
            held.items + self.quarantine.owed(),
            "the ledger knows every record"
        );
        for (id, destination) in self.destinations.iter() {
            let held = per_destination.get(&id).copied().unwrap_or_default();
            assert_eq!(destination.held, held, "a destination counts its records");
            let mut sum = 0;
            for (key, lane) in destination.lanes.iter() {
                let lane_id = (id, key);
                let requests = in_flight.get(&lane_id).copied().unwrap_or_default();
                assert_eq!(lane.in_flight, requests, "a lane counts its requests");
                let owed = verdicts.get(&lane_id).copied().unwrap_or_default();
                assert_eq!(lane.verdicts, owed, "a lane counts its verdicts");
                if lane_id.1.is_some() {
                    assert!(!lane.is_empty(), "a key leaves nothing behind");
                    assert!(requests <= 1, "one request per ordering key");
                }
                sum += requests;
            }
            assert_eq!(destination.in_flight, sum);
            assert!(
                sum <= self.settings.in_flight,
                "requests per destination are bounded"
            );
        }
    }

    fn whatever_may_leave_is_queued(&self) {
        let ready: BTreeSet<DestinationId> = self.ready.iter().copied().collect();
        assert_eq!(ready.len(), self.ready.len(), "queued once");
        for (id, destination) in self.destinations.iter() {
            assert_eq!(destination.queued, ready.contains(&id));
            let wanting: BTreeSet<&LaneKey> = destination.wanting.iter().collect();
            assert_eq!(wanting.len(), destination.wanting.len(), "queued once");
            let may_send = destination.may_send(self.settings.in_flight);
            if may_send && !wanting.is_empty() {
                assert!(destination.queued, "a destination that may send is queued");
            }
            for (key, lane) in destination.lanes.iter() {
                assert_eq!(lane.queued, wanting.contains(&key));
                let limit = if key.is_some() {
                    1
                } else {
                    self.settings.in_flight
                };
                let waits = lane.open.as_ref().is_some_and(|open: &OpenBatch| {
                    let due = open.since.checked_add(self.settings.linger);
                    due.is_some_and(|due| self.lingering.contains(&(due, id, key.clone())))
                });
                if lane.is_sendable(limit, |_| !waits) {
                    assert!(lane.queued, "a lane that may send is queued");
                }
            }
        }
    }
}
