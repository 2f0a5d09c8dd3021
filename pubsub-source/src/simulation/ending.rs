//! When a run is over, and how it ends.

use std::time::Duration;

use super::{Violation, world::World};

/// The faults end at this time at the latest.
const TROUBLE: Duration = Duration::from_secs(240);

/// After the faults everything must be done within this time: several of the longest leases, and
/// the time after which held messages are given back.
const PATIENCE: Duration = Duration::from_secs(1500);

impl World {
    /// Whether the faults are over and everything is settled.
    pub(super) fn is_done(&mut self) -> Result<bool, Violation> {
        let all_published = self.to_publish == 0;
        if !self.chance.is_calm()
            && (self.now >= TROUBLE || (all_published && self.server.backlog() == 0))
        {
            self.chance.calm_down();
        }
        if !self.chance.is_calm() || !all_published {
            return Ok(false);
        }
        let done = self.server.backlog() == 0
            && self
                .client
                .as_ref()
                .is_some_and(|client| client.is_drained(self.base + self.now) && !client.closing);
        if done {
            let client = self.client.as_ref().expect("looked at above");
            self.truth.check_no_loss(&client.covered)?;
        } else if self.now > TROUBLE + PATIENCE * (1 + self.generations) {
            let client = self.client.as_ref();
            if let Some(client) = client {
                println!("{:?}", client.machine.streams());
            }
            let stats = client.map(|client| client.machine.stats(self.base + self.now));
            return Err(format!(
                "nothing is lost, but it does not end: backlog {}, {stats:?}",
                self.server.backlog()
            ));
        }
        Ok(done)
    }

    /// Ends the last incarnation in good order.
    pub(super) fn finish(&mut self) -> Result<(), Violation> {
        self.finishing = true;
        self.close();
        let limit = self.now + Duration::from_secs(30);
        while self
            .client
            .as_ref()
            .is_some_and(|client| !client.machine.is_closed())
        {
            if self.now > limit {
                return Err("the source does not close".to_owned());
            }
            self.step()?;
        }
        Ok(())
    }

    pub(super) fn close(&mut self) {
        let at = self.base + self.now;
        if let Some(client) = &mut self.client {
            client.out.clear(&mut client.machine, at);
            client.machine.close(at);
            client.closing = true;
        }
    }
}
