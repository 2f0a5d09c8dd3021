//! What a seed brings.

use std::{num::NonZeroU32, time::Duration};

use connector_core::{Limits, backoff::Backoff};

use crate::{Delivery, MissingTopics, TopicCreation, machine::Retry, settings::Settings};

/// What must happen at least once over all runs, or the simulation proves less than it says.
pub(super) const EVERYTHING: [&str; 38] = [
    "a checkpoint was aborted",
    "a checkpoint was asked for",
    "a checkpoint was skipped by the commits",
    "a commit was repeated",
    "a commit waited too long for its quarantine to be durable",
    "a crash",
    "a crash between two effects",
    "a dead letter was kept",
    "a flush of the handler failed",
    "a mark was lost",
    "a message was kept aside",
    "a message was published again",
    "a quarantined message was discarded",
    "a quarantined message was staged again",
    "a quiet run",
    "a quota was used up",
    "a record was refused before it was staged or sent",
    "a request was answered UNAVAILABLE after it took effect",
    "a request was answered UNAVAILABLE before it took effect",
    "a request was divided",
    "a request was evaluated after its client gave up",
    "a request was lost",
    "a save failed",
    "a save failed though it was durable",
    "a settled state was restored",
    "a state that names messages was restored",
    "a state was restored twice",
    "a topic could not be created",
    "a topic did not exist",
    "a topic was created",
    "a topic was deleted",
    "an answer arrived before an earlier one",
    "an answer was lost",
    "an orderly close",
    "the host waited for room",
    "the stage was full",
    "two checkpoints were open at once",
    "whoever submitted a record was told",
];

/// Per occasion, in thousandths.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub(super) crash: u32,
    pub(super) lose_request: u32,
    pub(super) lose_answer: u32,
    pub(super) unavailable: u32,
    pub(super) quota: u32,
    pub(super) late: u32,
    pub(super) poison: u32,
    pub(super) broken: u32,
    pub(super) delete_topic: u32,
    pub(super) creation_trouble: u32,
    pub(super) flush_trouble: u32,
    pub(super) keep_aside: u32,
    pub(super) save_trouble: u32,
    pub(super) abort: u32,
    pub(super) skip_commit: u32,
    pub(super) lose_mark: u32,
    pub(super) twin: u32,
    pub(super) close: u32,
    pub(super) hesitate: u32,
}

/// What happens by chance in one run.
pub(super) type Chance = connector_core::conformance::Chance<Rates>;

pub(super) fn chance(seed: u64) -> Chance {
    Chance::new(seed, 10, &EVERYTHING, |rate| Rates {
        crash: rate(12),
        lose_request: rate(150),
        lose_answer: rate(150),
        unavailable: rate(250),
        quota: rate(100),
        late: rate(150),
        poison: rate(250),
        broken: rate(80),
        delete_topic: rate(60),
        creation_trouble: rate(500),
        flush_trouble: rate(400),
        keep_aside: rate(1_000),
        save_trouble: rate(150),
        abort: rate(150),
        skip_commit: rate(250),
        lose_mark: rate(300),
        twin: rate(500),
        close: rate(80),
        hesitate: rate(500),
    })
}

pub(super) fn settings(chance: &mut Chance) -> Settings {
    let delivery = chance.pick(&[Delivery::Flush, Delivery::Staged]);
    let seconds = |first, most| {
        let (first, most) = (Duration::from_millis(first), Duration::from_millis(most));
        Backoff::new(first, 2.0, most)
    };
    Settings {
        delivery,
        stage: Limits::items(chance.pick(&[1, 6, 20, 200])),
        quarantine: Limits::items(1_000),
        batch_messages: chance.pick(&[1, 4, 1_000]),
        batch_bytes: chance.pick(&[120, 10_000]),
        linger: Duration::from_millis(chance.pick(&[0, 0, 80])),
        in_flight: chance.pick(&[1, 2, 4]),
        ordering: true,
        retry: Retry {
            total: None,
            delays: seconds(100, 2_000),
            quota_delays: seconds(500, 2_000),
            deadlines: seconds(1_000, 4_000),
        },
        // Nothing in a run stands still for as long.
        progress_timeout: Duration::from_secs(36_000),
        close_timeout: Duration::from_secs(chance.pick(&[1, 20])),
        missing_topics: MissingTopics::Create(
            TopicCreation::default()
                .delays(seconds(200, 2_000))
                .attempts(NonZeroU32::MAX),
        ),
        max_destinations: chance.pick(&[1, 2, 100]),
        idle_destinations: Duration::from_secs(5),
        max_consecutive_rejections: None,
        ..Settings::default()
    }
}
