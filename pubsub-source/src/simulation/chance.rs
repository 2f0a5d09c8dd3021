//! What a seed brings.

use std::time::Duration;

use connector_core::Limits;

use crate::{on_drop::OnDrop, settings::Settings, state::SavedDeliveries};

/// What must happen at least once over all runs, or the simulation proves less than it says.
pub(super) const EVERYTHING: &[&str] = &[
    "an acknowledgement had no effect though answered OK",
    "an ack id was restored",
    "an answer arrived before an earlier one",
    "an answer was lost",
    "a call was answered UNAVAILABLE after it took effect",
    "a call was answered UNAVAILABLE before it took effect",
    "a call was evaluated after its client gave up",
    "a checkpoint was aborted",
    "a checkpoint was skipped by the commits",
    "a commit was repeated",
    "a commit's receipt failed",
    "a crash",
    "a crash between two effects",
    "a cut fell inside a message",
    "a held message was handed out again",
    "a key went back",
    "a lapse at the server",
    "a lapse in the buffer",
    "a lapse told by a commit",
    "a message in hand was revoked",
    "a message was dead-lettered",
    "a message was dropped behind another",
    "a message was redelivered under a live lease",
    "a paused source was parked",
    "a quiet run",
    "a redelivery of a held message",
    "a redelivery recognised after a restore",
    "a release failed",
    "a request was lost",
    "a response was late",
    "a save failed though it was durable",
    "a save took long",
    "a stream ended clean",
    "a stream ended with an error",
    "a successor stream opened",
    "an acknowledged message of a key was delivered again",
    "an orderly close",
    "another subscriber acknowledged a message",
    "another subscriber took messages",
    "exactly-once delivery",
    "exactly-once delivery was switched",
    "held too long",
    "ids started again",
    "records were skipped",
    "the buffer was full",
    "the host gave a message back",
    "the host paused the source",
    "the host settled a message",
    "the host stood still",
    "the order of keys was kept",
    "the process was suspended",
    "the seen window overflowed",
    "the time of day was put back or forward",
    "two checkpoints were open at once",
    "two responses waited unread",
];

/// Per occasion, in thousandths.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub(super) crash: u32,
    pub(super) lose_request: u32,
    pub(super) lose_answer: u32,
    pub(super) unavailable: u32,
    pub(super) no_effect: u32,
    pub(super) late_call: u32,
    pub(super) late_response: u32,
    pub(super) redeliver: u32,
    pub(super) end_stream: u32,
    pub(super) stand_still: u32,
    pub(super) pause: u32,
    pub(super) suspend: u32,
    pub(super) save_trouble: u32,
    pub(super) skip_commit: u32,
    pub(super) settle: u32,
    pub(super) close: u32,
    pub(super) switch: u32,
    pub(super) take_away: u32,
    pub(super) step: u32,
}

/// What happens by chance in one run.
pub(super) type Chance = connector_core::conformance::Chance<Rates>;

pub(super) fn chance(seed: u64) -> Chance {
    Chance::new(seed, 10, EVERYTHING, |rate| Rates {
        crash: rate(12),
        lose_request: rate(150),
        lose_answer: rate(150),
        unavailable: rate(200),
        no_effect: rate(100),
        late_call: rate(100),
        late_response: rate(100),
        redeliver: rate(200),
        end_stream: rate(150),
        stand_still: rate(20),
        pause: rate(40),
        suspend: rate(15),
        save_trouble: rate(150),
        skip_commit: rate(200),
        settle: rate(100),
        close: rate(5),
        switch: rate(20),
        take_away: rate(60),
        step: rate(20),
    })
}

pub(super) fn settings(chance: &mut Chance, ordered: bool) -> Settings {
    let outstanding = chance.pick(&[6, 20, 100, 100_000]);
    Settings {
        streams: if ordered {
            1
        } else {
            chance.pick(&[1, 1, 2, 3])
        },
        outstanding,
        first_outstanding: chance.pick(&[3, 10, 1000]),
        outstanding_bytes: chance.pick(&[None, None, Some(300)]),
        buffer: Limits::items(chance.pick(&[4, 20, 10_000])),
        paused_limit: None,
        max_extension: Duration::from_secs(chance.pick(&[10, 20, 60])),
        max_hold: Duration::from_secs(chance.pick(&[90, 3600, 3600, 3600])),
        stall_after: Duration::ZERO,
        unreachable_after: None,
        seen_limit: 1_000_000,
        close_budget: Duration::from_secs(5),
        confirm_acks: chance.pick(&[None, None, Some(Duration::from_secs(3))]),
        on_drop: chance.pick(&[
            None,
            None,
            Some(OnDrop::Release),
            Some(OnDrop::Lapse),
            Some(OnDrop::ReleaseAfter(Duration::from_secs(7))),
        ]),
        saved_deliveries: chance.pick(&[
            SavedDeliveries::MessageIds,
            SavedDeliveries::MessageIds,
            SavedDeliveries::AckIds,
            SavedDeliveries::Nothing,
        ]),
        message_ordering: ordered,
    }
}
