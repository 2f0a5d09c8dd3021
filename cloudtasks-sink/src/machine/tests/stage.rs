//! A machine that stages, and a time of day that goes on with its clock.

use std::time::SystemTime;

use gcp_wire::RpcError;

use super::*;

pub(super) const WINDOW: Duration = Duration::from_secs(3_600);

/// The machine, and when it began.
pub(super) struct Stage {
    pub(super) script: Script,
    started: Instant,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Sent {
    One(RecordId),
    Many(CallId),
}

impl Stage {
    pub(super) fn new(in_batches: bool) -> Self {
        Self::limited(Limits::new(100, 1_000_000), in_batches)
    }

    pub(super) fn limited(limit: Limits, in_batches: bool) -> Self {
        Self::of(script::settings(), limit, in_batches)
    }

    /// One whose queues take a task every so often.
    pub(super) fn paced(rate: f64) -> Self {
        let mut settings = script::settings();
        settings.pacing.rate = Some(rate);
        Self::of(settings, Limits::new(100, 1_000_000), false)
    }

    fn of(settings: Settings, limit: Limits, in_batches: bool) -> Self {
        let started = crate::driver::clock::now();
        let mut machine = Machine::new(settings, None);
        if in_batches {
            machine = machine.batching(Batch::up_to(10), "scripted".to_owned());
        }
        let settings = StagedSettings {
            window: WINDOW,
            stage: limit,
            quarantine: Limits::new(100, 1_000_000),
        };
        let restored = RestoredTasks::default();
        let noon = Self::noon();
        let (machine, _) = machine.staging(started, noon, settings, None, restored);
        let mut script = Script::of(machine);
        script.now = started;
        Self { script, started }
    }

    fn noon() -> SystemTime {
        SystemTime::UNIX_EPOCH + 500_000 * WINDOW
    }

    /// Lets time pass without a word to the machine but the time of day.
    pub(super) fn pass(&mut self, time: Duration) {
        self.script.now += time;
        let today = Self::noon() + (self.script.now - self.started);
        self.script.machine.handle_time_of_day(today);
    }

    pub(super) fn commit(&mut self, epoch: u64, labels: &[&str]) {
        for label in labels {
            self.script.accept(label, Named::Minted);
        }
        self.script.snapshot(epoch).unwrap();
        self.script.machine.commit(Epoch::new(epoch)).unwrap();
    }

    /// The calls that are made, with their bytes.
    pub(super) fn sent(&mut self) -> Vec<(Sent, bytes::Bytes)> {
        let effects = self.script.effects().into_iter();
        effects
            .filter_map(|effect| match effect {
                Effect::Create {
                    record, request, ..
                } => Some((Sent::One(record), request)),
                Effect::CreateBatch { call, request, .. } => Some((Sent::Many(call), request)),
                _ => None,
            })
            .collect()
    }

    pub(super) fn refuse(&mut self, sent: Sent) {
        let error = RpcError::status("CreateTask", Code::NotFound, "no such queue");
        match sent {
            Sent::One(record) => self.script.answer(record, Answer::Failed(error)),
            Sent::Many(call) => {
                let (machine, now) = (&mut self.script.machine, self.script.now);
                machine.handle_batch_created(now, call, Err(error), || 0.5);
                machine.check_invariants();
            }
        }
    }

    pub(super) fn is_late(&mut self, sent: Sent) {
        let (machine, now) = (&mut self.script.machine, self.script.now);
        match sent {
            Sent::One(record) => machine.handle_late(now, record),
            Sent::Many(call) => machine.handle_late_batch(now, call),
        }
        machine.check_invariants();
    }
}
