//! What a seed brings.

use std::time::Duration;

use connector_core::Limits;

use crate::{settings::Settings, state::SavedDeliveries};

/// What must happen at least once in every quarter of the runs.
pub(super) const EVERYTHING: &[&str] = &[
    "a call was answered UNAVAILABLE",
    "a call was evaluated after its client gave up",
    "a checkpoint was aborted",
    "a crash while a predecessor went on",
    "a crash",
    "a host that had lost its store gave back what it held",
    "a lapse at the server",
    "a mark of a predecessor was refused",
    "a parked split was resumed",
    "a paused split was parked",
    "a predecessor acknowledged what it had committed",
    "a predecessor handed something out",
    "a predecessor was suspended",
    "a predecessor went on",
    "a quiet run",
    "a reader read several subscriptions",
    "a redelivery recognised after a restore",
    "a request was lost",
    "a response was late",
    "a restart with as many readers",
    "a restart with fewer readers",
    "a restart with more readers",
    "a running split found no room",
    "a save failed though it was durable",
    "a save failed",
    "a save failed, and was durable later",
    "a save of a predecessor was refused",
    "a split heard another",
    "a split was paused",
    "a split was resumed",
    "a stream ended",
    "a subscription had several readers",
    "an ack id was restored",
    "an answer was lost",
    "an orderly close",
    "exactly-once delivery",
    "splits stayed paused until the others had everything",
    "the host stood still",
    "the process was suspended",
];

/// Per occasion, in thousandths.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub(super) crash: u32,
    pub(super) fail_over: u32,
    pub(super) close: u32,
    pub(super) lose_request: u32,
    pub(super) lose_answer: u32,
    pub(super) unavailable: u32,
    pub(super) late_call: u32,
    pub(super) late_response: u32,
    pub(super) end_stream: u32,
    pub(super) stand_still: u32,
    pub(super) suspend: u32,
    pub(super) save_trouble: u32,
    pub(super) pause: u32,
}

/// What happens by chance in one run.
pub(super) type Chance = connector_core::conformance::Chance<Rates>;

pub(super) fn chance(seed: u64) -> Chance {
    Chance::new(seed, 10, EVERYTHING, |rate| Rates {
        crash: rate(25),
        fail_over: rate(40),
        close: rate(15),
        lose_request: rate(100),
        lose_answer: rate(100),
        unavailable: rate(150),
        late_call: rate(80),
        late_response: rate(80),
        end_stream: rate(100),
        stand_still: rate(10),
        suspend: rate(15),
        save_trouble: rate(200),
        pause: rate(60),
    })
}

pub(super) fn settings(chance: &mut Chance) -> Settings {
    Settings {
        streams: chance.pick(&[1, 1, 2]),
        outstanding: chance.pick(&[20, 100, 100_000]),
        first_outstanding: chance.pick(&[5, 20, 1000]),
        buffer: Limits::items(chance.pick(&[8, 12, 24, 100])),
        max_extension: Duration::from_secs(chance.pick(&[10, 20, 60])),
        stall_after: Duration::ZERO,
        confirm_acks: chance.pick(&[None, None, Some(Duration::from_secs(3))]),
        saved_deliveries: chance.pick(&[
            SavedDeliveries::MessageIds,
            SavedDeliveries::MessageIds,
            SavedDeliveries::AckIds,
            SavedDeliveries::Nothing,
        ]),
        ..Settings::default()
    }
}
