//! The stats through the `metrics` facade.

use metrics::{Counter, Gauge};

use crate::machine::Machine;
use crate::stats::Kind;
use crate::{DestinationStats, Stats};

/// The registered metrics, and what was published last.
///
/// Counters go out as differences, so that several sinks with one instance name add up, and one that
/// is built again goes on where the last one was.
pub(super) struct Published {
    handles: Vec<Handle>,
    instance: String,
}

enum Handle {
    Counter { counter: Counter, last: u64 },
    Gauge { gauge: Gauge, last: u64 },
}

impl Published {
    pub(super) fn new(instance: &str) -> Self {
        let register = |(name, kind, _)| {
            let name = format!("cloudtasks_sink_{name}");
            let instance = instance.to_owned();
            match kind {
                Kind::Counter => Handle::Counter {
                    counter: metrics::counter!(name, "instance" => instance),
                    last: 0,
                },
                Kind::Gauge => Handle::Gauge {
                    gauge: metrics::gauge!(name, "instance" => instance),
                    last: 0,
                },
            }
        };
        Self {
            handles: Stats::default().entries().map(register).collect(),
            instance: instance.to_owned(),
        }
    }

    pub(super) fn publish(&mut self, machine: &mut Machine) {
        self.publish_stats(&machine.stats());
        // Looked up by name: they change seldom, or are few and only there on request.
        let instance = || self.instance.clone();
        for (queue, state) in machine.take_queue_states() {
            let queue = queue.to_string();
            metrics::gauge!("cloudtasks_sink_queue_stopped", "instance" => instance(), "queue" => queue)
                .set(if state.is_stopped() { 1.0 } else { 0.0 });
        }
        for (queue, more) in machine.figures().take_changed() {
            let numbers = [more.created, more.duplicates, more.rejected];
            for (name, number) in DestinationStats::NAMES.iter().zip(numbers) {
                let name = format!("cloudtasks_sink_destination_{name}");
                let queue = queue.to_string();
                metrics::counter!(name, "instance" => instance(), "queue" => queue)
                    .increment(number);
            }
        }
        for (code, more) in machine.figures().take_changed_failures() {
            metrics::counter!("cloudtasks_sink_failures", "instance" => instance(), "code" => code.name())
                .increment(more);
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "gauges are floating point; what a sink holds is far below 2^53"
    )]
    fn publish_stats(&mut self, stats: &Stats) {
        for (handle, (_, _, value)) in self.handles.iter_mut().zip(stats.entries()) {
            match handle {
                Handle::Counter { counter, last } => {
                    if value > *last {
                        counter.increment(value - *last);
                        *last = value;
                    }
                }
                Handle::Gauge { gauge, last } => {
                    if value != *last {
                        gauge.set(value as f64);
                        *last = value;
                    }
                }
            }
        }
    }
}
