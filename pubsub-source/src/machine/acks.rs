//! What is to be acknowledged, in the order in which it was released.

use std::collections::VecDeque;

use connector_core::ledger::{Place, SegmentView};

use super::key::MessageKey;
use crate::delivery::DeliveryId;

/// Requests of ordering keys that may be under way at once: as many as of messages without keys.
const LANES: u8 = 8;

/// What may wait to be acknowledged in order before more is taken out of the released epochs: a full
/// request for each lane.
const WAITING: usize = 8 * 1000;

/// Items of released epochs that one turn looks at, whatever it finds: those whose leases are over
/// fill no request, and there may be as many of them as deliveries.
pub(super) const PER_TURN: usize = WAITING;

/// The requests in which one part of the ordering keys is acknowledged, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lane(u8);

impl Lane {
    /// The lane of a key with this hash.
    pub(super) fn of(hash: u64) -> Self {
        let lane = hash % u64::from(LANES);
        Self(u8::try_from(lane).unwrap_or_default())
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..LANES).map(Self)
    }

    /// Whose turn it is: that of messages without a key, or that of a lane.
    fn turn(lane: Option<Self>) -> usize {
        lane.map_or(0, |lane| 1 + usize::from(lane.0))
    }
}

/// The next thing to acknowledge.
#[derive(Debug)]
pub(super) enum Next {
    /// A delivery that is marked as being acknowledged already.
    Delivery(DeliveryId),
    /// An item of a committed epoch: the newest delivery of this message, if it is still held.
    Released(Place, MessageKey),
}

#[derive(Debug)]
struct Released {
    segment: SegmentView<MessageKey>,
    cursor: u32,
    left: usize,
}

/// What waits in one lane.
#[derive(Debug, Default)]
struct Waiting {
    urgent: VecDeque<DeliveryId>,
    released: VecDeque<DeliveryId>,
}

/// The queue of acknowledgements.
///
/// A commit only puts its epochs' segments in here; they are taken apart while requests are cut, a
/// bounded number per turn, so that a commit of a million deliveries does not hold anybody up.
#[derive(Debug, Default)]
pub(super) struct Acks {
    urgent: VecDeque<DeliveryId>,
    released: VecDeque<Released>,
    /// One for each lane, where keys are acknowledged in order.
    lanes: Vec<Waiting>,
    /// Deliveries in the lanes.
    waiting: usize,
    /// Whose turn it is, in a round of the messages without a key and of all lanes.
    turn: usize,
}

impl Acks {
    /// A queue that keeps the order of keys.
    pub(super) fn in_lanes() -> Self {
        Self {
            lanes: Lane::all().map(|_| Waiting::default()).collect(),
            ..Self::default()
        }
    }

    /// Acknowledges one delivery, before what commits released.
    pub(super) fn push(&mut self, id: DeliveryId, lane: Option<Lane>) {
        match lane.and_then(|lane| self.lanes.get_mut(usize::from(lane.0))) {
            Some(waiting) => {
                waiting.urgent.push_back(id);
                self.waiting += 1;
            }
            None => self.urgent.push_back(id),
        }
    }

    /// Acknowledges an item of a committed epoch when its lane's turn comes.
    pub(super) fn push_released(&mut self, id: DeliveryId, lane: Option<Lane>) {
        match lane.and_then(|lane| self.lanes.get_mut(usize::from(lane.0))) {
            Some(waiting) => {
                waiting.released.push_back(id);
                self.waiting += 1;
            }
            None => self.urgent.push_back(id),
        }
    }

    /// Puts a delivery back that did not fit into the request.
    pub(super) fn unpop(&mut self, id: DeliveryId, lane: Option<Lane>) {
        match lane.and_then(|lane| self.lanes.get_mut(usize::from(lane.0))) {
            Some(waiting) => {
                waiting.urgent.push_front(id);
                self.waiting += 1;
            }
            None => self.urgent.push_front(id),
        }
    }

    /// Acknowledges what a commit released.
    pub(super) fn release(&mut self, segments: Vec<SegmentView<MessageKey>>) {
        for segment in segments {
            self.released.push_back(Released {
                left: segment.len(),
                cursor: 0,
                segment,
            });
        }
    }

    pub(super) fn pop(&mut self) -> Option<Next> {
        if let Some(id) = self.urgent.pop_front() {
            return Some(Next::Delivery(id));
        }
        let (place, key) = self.pop_released()?;
        Some(Next::Released(place, key))
    }

    /// The next items of committed epochs, if they are those from `first` on and nothing comes before
    /// them: how many were taken, at most `most`.
    pub(super) fn pop_run(&mut self, first: Place, most: usize) -> usize {
        if !self.urgent.is_empty() {
            return 0;
        }
        let Some(released) = self.released.front_mut() else {
            return 0;
        };
        let count = released.segment.next_run(&mut released.cursor, first, most);
        released.left -= count;
        count
    }

    /// The next item of a committed epoch.
    fn pop_released(&mut self) -> Option<(Place, MessageKey)> {
        while let Some(first) = self.released.front_mut() {
            if let Some((place, key)) = first.segment.next_from(&mut first.cursor) {
                first.left -= 1;
                return Some((place, key.clone()));
            }
            self.released.pop_front();
        }
        None
    }

    /// The next item of a committed epoch to put into its lane, while there is room for it to wait.
    pub(super) fn poll_released(&mut self) -> Option<(Place, MessageKey)> {
        if self.waiting + self.urgent.len() >= WAITING {
            return None;
        }
        self.pop_released()
    }

    /// The next delivery of a lane.
    pub(super) fn pop_lane(&mut self, lane: Option<Lane>) -> Option<DeliveryId> {
        let Some(lane) = lane else {
            return self.urgent.pop_front();
        };
        let waiting = self.lanes.get_mut(usize::from(lane.0))?;
        let id = waiting.urgent.pop_front();
        let id = id.or_else(|| waiting.released.pop_front())?;
        self.waiting -= 1;
        Some(id)
    }

    /// The lanes with something in them, the one whose turn it is first. Messages without a key
    /// are in none, and have their turn like a lane: else they would take every request there is
    /// for as long as there are any.
    pub(super) fn lanes(&self) -> Vec<Option<Lane>> {
        let waits = |lane: Option<Lane>| match lane {
            None => !self.urgent.is_empty(),
            Some(lane) => {
                let waiting = self.lanes.get(usize::from(lane.0));
                waiting.is_some_and(|one| !one.urgent.is_empty() || !one.released.is_empty())
            }
        };
        let round = std::iter::once(None).chain(Lane::all().map(Some));
        let mut lanes: Vec<Option<Lane>> = round.filter(|lane| waits(*lane)).collect();
        let next = lanes.partition_point(|lane| Lane::turn(*lane) < self.turn);
        lanes.rotate_left(next);
        lanes
    }

    /// A request of a lane was cut: the next turn is that of the next one.
    pub(super) fn end_turn(&mut self, lane: Option<Lane>) {
        self.turn = Lane::turn(lane) + 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.urgent.is_empty()
            && self.waiting == 0
            && self.released.iter().all(|released| released.left == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use connector_core::{Epoch, ledger::Ledger};

    use super::*;
    use crate::machine::request::MAX_IDS;

    #[test]
    fn a_full_request_of_each_lane_may_wait() {
        assert_eq!(WAITING, Lane::all().count() * MAX_IDS);
    }

    #[test]
    fn no_more_is_taken_out_of_an_epoch_than_may_wait_whether_or_not_it_has_keys() {
        for lane in [None, Lane::all().next()] {
            let mut ledger = Ledger::new();
            for number in 0..3 * WAITING as u64 {
                ledger.add(MessageKey::Number(number));
            }
            ledger.seal(Epoch::new(1)).unwrap();
            let mut acks = Acks::in_lanes();
            acks.release(ledger.commit(Epoch::new(1)).unwrap().released);
            let mut taken = 0;
            let mut take = |acks: &mut Acks| {
                while acks.poll_released().is_some() {
                    acks.push_released(DeliveryId::new(0, 0), lane);
                    taken += 1;
                }
                taken
            };
            assert_eq!(take(&mut acks), WAITING, "{lane:?}");
            for _ in 0..1000 {
                assert!(acks.pop_lane(lane).is_some());
            }
            assert_eq!(take(&mut acks), WAITING + 1000, "{lane:?}");
        }
    }

    /// Epoch 1 of so many items, committed; and the places of the items.
    fn released(count: u64) -> (Acks, Vec<Place>) {
        let mut ledger = Ledger::new();
        let add = |number| ledger.add(MessageKey::Number(number));
        let places = (0..count).map(add).collect();
        ledger.seal(Epoch::new(1)).unwrap();
        let mut acks = Acks::default();
        acks.release(ledger.commit(Epoch::new(1)).unwrap().released);
        (acks, places)
    }

    #[test]
    fn nothing_waits_once_every_released_item_is_taken_one_by_one_or_in_runs() {
        let (mut acks, places) = released(6);
        assert!(matches!(acks.pop(), Some(Next::Released(place, _)) if place == places[0]));
        assert_eq!(acks.pop_run(places[1], 3), 3);
        for _ in 0..2 {
            assert!(!acks.is_empty());
            assert!(acks.poll_released().is_some());
        }
        assert!(acks.is_empty());
        assert!(acks.pop().is_none());
    }

    #[test]
    fn what_was_pushed_comes_before_what_commits_released() {
        let (mut acks, places) = released(2);
        let id = DeliveryId::new(7, 7);
        acks.push(id, None);
        assert_eq!(acks.pop_run(places[0], 2), 0);
        assert!(matches!(acks.pop(), Some(Next::Delivery(next)) if next == id));
        assert_eq!(acks.pop_run(places[0], 2), 2);
    }

    #[test]
    fn what_did_not_fit_into_a_request_is_the_first_of_the_next_one() {
        for lane in [None, Lane::all().nth(3)] {
            let mut acks = Acks::in_lanes();
            let ids: Vec<DeliveryId> = (0..3).map(|index| DeliveryId::new(0, index)).collect();
            acks.push(ids[0], lane);
            acks.push(ids[1], lane);
            acks.push_released(ids[2], lane);
            for _ in 0..2 {
                assert_eq!(acks.pop_lane(lane), Some(ids[0]), "{lane:?}");
                acks.unpop(ids[0], lane);
            }
            let popped: Vec<DeliveryId> = std::iter::from_fn(|| acks.pop_lane(lane)).collect();
            assert_eq!(popped, ids, "{lane:?}");
            assert!(acks.is_empty());
        }
    }

    #[test]
    fn keys_are_spread_over_all_lanes() {
        let lanes: Vec<Lane> = Lane::all().collect();
        let mut used: Vec<Lane> = (0..100).map(Lane::of).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used, lanes);
    }

    #[test]
    fn messages_without_a_key_and_every_lane_have_their_turns() {
        let mut acks = Acks::in_lanes();
        let lanes = || std::iter::once(None).chain(Lane::all().map(Some));
        for index in 0..100 {
            for lane in lanes() {
                acks.push(DeliveryId::new(0, index), lane);
            }
        }
        let mut turns: BTreeMap<Option<Lane>, u32> = BTreeMap::new();
        for _ in 0..90 {
            let next = acks.lanes()[0];
            assert!(acks.pop_lane(next).is_some());
            acks.end_turn(next);
            *turns.entry(next).or_default() += 1;
        }
        assert_eq!(turns, lanes().map(|lane| (lane, 10)).collect());
    }
}
