//! Subscriptions with exactly-once delivery: a lease counts when the service has confirmed it.

use std::time::Instant;

use super::{Machine, batch::Stage};
use crate::delivery::DeliveryId;

impl Machine {
    /// Responses say whether the subscription has exactly-once delivery. It can be switched on and
    /// off at any time; what is held, buffered and under way goes on under the other rules.
    pub(super) fn follow_exactly_once(&mut self, now: Instant, on: bool) {
        if self.exactly_once.is_some() == on {
            return;
        }
        self.exactly_once = on.then_some(now);
        self.cadence.handle_exactly_once(on);
        self.adapt_lease(now);
        if !on {
            // Nothing promises a confirmation any more, and nothing needs one.
            self.buffer.confirm_all();
            return;
        }
        let deliveries = &self.deliveries;
        let waited = self.buffer.withhold(|message| {
            let id = deliveries.current(message.delivery);
            (deliveries.stage(id) == Stage::Buffered).then(|| id.batch())
        });
        for batch in waited {
            self.leases.hurry(batch, now);
        }
    }

    /// Whether the service has answered for each ack id of what was sent then.
    pub(super) fn answers_for_each(&self, sent: Instant) -> bool {
        self.exactly_once.is_some_and(|since| since <= sent)
    }

    /// A message that waits to be handed out was delivered again: it waits for the confirmation of
    /// the lease that it has now.
    pub(super) fn await_renewed(&mut self, now: Instant, id: DeliveryId) {
        if self.deliveries.stage(id) == Stage::Buffered {
            self.await_lease(now, self.deliveries.origin(id), id);
        }
    }

    /// The message that waits as `queued` is leased by another delivery now.
    pub(super) fn await_lease(&mut self, now: Instant, queued: DeliveryId, leased: DeliveryId) {
        let waits =
            self.exactly_once.is_some() && self.buffer.wait_for(queued.batch(), leased.batch());
        if waits {
            self.leases.hurry(leased.batch(), now);
        }
    }
}
