//! The stats through the `metrics` facade.

use metrics::{Counter, Gauge};

use crate::Stats;
use crate::stats::Kind;

/// The registered metrics, and what was published last.
///
/// Counters go out as differences, so that several sinks with one instance name add up.
pub(super) struct Published {
    handles: Vec<Handle>,
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
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "gauges are floating point; what a sink holds is far below 2^53"
    )]
    pub(super) fn publish(&mut self, stats: &Stats) {
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
