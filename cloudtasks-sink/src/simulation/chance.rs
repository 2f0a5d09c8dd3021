//! What a seed brings.

/// What must happen at least once over all runs, or the simulation proves less than it says.
pub(super) const EVERYTHING: [&str; 37] = [
    "a batch was answered as not done",
    "a batch was partly refused",
    "a call arrived after its client gave up",
    "a call became too late before it was sent",
    "a call was answered UNAVAILABLE after it took effect",
    "a call was answered UNAVAILABLE before it took effect",
    "a call was lost",
    "a checkpoint was aborted",
    "a checkpoint was asked for",
    "a checkpoint was skipped by the commits",
    "a clock was set",
    "a commit was repeated",
    "a commit waited too long for its quarantine to be durable",
    "a crash",
    "a crash between two effects",
    "a flush of the handler failed",
    "a machine slept",
    "a mark was lost",
    "a name expired",
    "a process went on after it was replaced",
    "a queue was missing or closed",
    "a quiet run",
    "a refused task was kept aside",
    "a save failed",
    "a save failed though it was durable",
    "a settled state was restored",
    "a state that names tasks was restored",
    "a state was restored twice",
    "a task existed when it was asked for",
    "a task of a batch was told as failed after it was created",
    "a task expired",
    "an answer was lost",
    "an operator forced a task",
    "an operator marked a task",
    "an untouched state was restored",
    "the host waited for room",
    "the sink ended after it had stood still",
];

/// Per occasion, in thousandths.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub(super) crash: u32,
    pub(super) lose_call: u32,
    pub(super) lose_answer: u32,
    pub(super) unavailable: u32,
    pub(super) late: u32,
    pub(super) trouble: u32,
    pub(super) flush_trouble: u32,
    pub(super) keep_aside: u32,
    pub(super) save_trouble: u32,
    pub(super) abort: u32,
    pub(super) skip_commit: u32,
    pub(super) lose_mark: u32,
    pub(super) twin: u32,
    pub(super) zombie: u32,
    pub(super) long_stop: u32,
    pub(super) sleep: u32,
    pub(super) clock: u32,
    pub(super) not_done: u32,
    pub(super) doubt: u32,
}

/// What happens by chance in one run.
pub(super) type Chance = connector_core::conformance::Chance<Rates>;

pub(super) fn chance(seed: u64) -> Chance {
    let mut chance = Chance::new(seed, 12, &EVERYTHING, |rate| Rates {
        crash: rate(12),
        lose_call: rate(200),
        lose_answer: rate(300),
        unavailable: rate(300),
        late: rate(200),
        trouble: rate(60),
        flush_trouble: rate(500),
        keep_aside: rate(1_000),
        save_trouble: rate(200),
        abort: rate(200),
        skip_commit: rate(300),
        lose_mark: rate(600),
        twin: rate(500),
        zombie: rate(700),
        long_stop: rate(500),
        sleep: rate(20),
        clock: rate(50),
        not_done: rate(600),
        doubt: rate(400),
    });
    if chance.is_quiet() {
        chance.count("a quiet run");
    }
    chance
}

/// A task id, so that a run is a function of its seed to the last byte.
pub(super) fn task_id(chance: &mut Chance) -> String {
    format!("{:032x}", chance.random().u128(..))
}
