//! The one buffer of a reader's splits, once nothing is left to do.

use super::{Violation, bugs::Bug, event::Address, reader::Reader, world::World};

impl World {
    /// A split tells the others how it stands, as its driver does. Answers whether that changes
    /// anything for it.
    pub(super) fn share(&mut self, address: Address) -> bool {
        let (at, bug) = (self.at(), self.bug);
        let Some(split) = self.split(address) else {
            return false;
        };
        let (seat, machine) = (&split.seat, &mut split.machine);
        let news = match bug {
            Some(Bug::PauseUntold) => {
                let mut standing = machine.standing();
                standing.paused = false;
                standing.parked = false;
                let order = seat.pool.report(seat.split, standing);
                machine.handle_room(at, order.room)
            }
            Some(Bug::RoomIgnored) => {
                seat.share(at, machine);
                machine.handle_room(at, crate::source::Room::Free);
                false
            }
            _ => seat.share(at, machine).1,
        };
        if self.split(address).is_some_and(|split| split.starves()) {
            self.chance.count("a running split found no room");
        }
        news
    }

    /// The splits of a reader that another one has called.
    pub(super) fn hear_bells(&mut self, address: Address) {
        if self.bug == Some(Bug::BellUnheard) {
            return;
        }
        let place = address.place;
        let Some(reader) = self.reader(place) else {
            return;
        };
        let splits = reader.splits.iter().zip(reader.addresses(place));
        let called = splits.filter(|(split, _)| split.is_called());
        let called: Vec<Address> = called.map(|(_, address)| address).collect();
        self.chance
            .count_many("a split heard another", called.len() as u64);
        self.touched.extend(called);
    }

    /// With nothing left to do, a paused split never starves a running one, nobody waits for room
    /// that is there, and the bound holds.
    pub(super) fn check_sharing(&self) -> Result<(), Violation> {
        for job in self.jobs.values() {
            for reader in job.readers.values() {
                if self.now >= reader.suspended_until && !reader.closing {
                    self.check_shares(reader)?;
                }
            }
        }
        Ok(())
    }

    fn check_shares(&self, reader: &Reader) -> Result<(), Violation> {
        let bound = self.settings.buffer.items;
        let standings = || reader.splits.iter().map(|split| split.machine.standing());
        let held: usize = standings().map(|standing| standing.held.items).sum();
        // Room is asked for before a response is read, and not for what is in it.
        let slack = reader.splits.len() * self.service.response_messages;
        if held > bound + slack {
            return Err(format!(
                "{held} messages are buffered, with room for {bound}: {:?}",
                standings().collect::<Vec<_>>()
            ));
        }
        let starved = reader.splits.iter().any(|split| split.starves());
        let hoards = standings().any(|it| it.paused && !it.parked && it.held.items > 0);
        if starved && hoards {
            return Err(format!(
                "a paused split starves a running one: {:?}",
                standings().collect::<Vec<_>>()
            ));
        }
        // Half of the bound is reserved at most: below the other half there is always room.
        if starved && held < bound / 2 {
            return Err(format!(
                "a split waits for room that is there: {:?}",
                standings().collect::<Vec<_>>()
            ));
        }
        Ok(())
    }
}
