//! The stats through the `metrics` facade.

use std::time::Duration;

use metrics::{Counter, Gauge, Label};

use gcp_wire::{Code, TopicName};

use crate::{DestinationStats, Stats, dead_letter::FlushTimes};

/// One number of [`Stats`].
pub(crate) struct Number {
    pub(crate) metric: &'static str,
    pub(crate) kind: Kind,
    pub(crate) value: u64,
}

/// How a number moves.
#[derive(Debug, Clone, Copy)]
#[expect(
    non_camel_case_types,
    reason = "the names stand before the numbers where those are declared"
)]
pub(crate) enum Kind {
    /// Only up.
    counter,
    /// Up and down.
    gauge,
}

enum Instrument {
    Counter(Counter),
    Gauge(Gauge),
}

/// Registered once: looking a metric up by name at each turn would cost more than the turn.
///
/// Counters go out as differences, so that several sinks with one instance name add up, and one that
/// is built again goes on where the last one was.
pub(crate) struct Instruments {
    instruments: Vec<Instrument>,
    published: Stats,
}

impl Instruments {
    pub(crate) fn new(instance: &str) -> Self {
        let label = || vec![Label::new("instance", instance.to_owned())];
        let instruments = Stats::default()
            .numbers()
            .into_iter()
            .map(|number| match number.kind {
                Kind::counter => Instrument::Counter(metrics::counter!(number.metric, label())),
                Kind::gauge => Instrument::Gauge(metrics::gauge!(number.metric, label())),
            })
            .collect();
        Self {
            instruments,
            published: Stats::default(),
        }
    }

    /// Publishes the numbers, when any has changed.
    pub(crate) fn publish(&mut self, stats: &Stats) {
        if *stats == self.published {
            return;
        }
        let last = std::mem::replace(&mut self.published, *stats);
        let numbers = stats.numbers().into_iter().zip(last.numbers());
        for (instrument, (number, last)) in self.instruments.iter().zip(numbers) {
            match instrument {
                Instrument::Counter(counter) => {
                    counter.increment(number.value.saturating_sub(last.value));
                }
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "gauges are f64 in the facade; what is held is far below 2^53"
                )]
                Instrument::Gauge(gauge) => gauge.set(number.value as f64),
            }
        }
    }
}

/// Publishes what was counted since the last time for topics. Looked up by name: it is for few
/// topics, and only on request.
pub(crate) fn publish_destinations(instance: &str, counted: Vec<(TopicName, DestinationStats)>) {
    for (topic, more) in counted {
        let labels = vec![
            Label::new("instance", instance.to_owned()),
            Label::new("topic", topic.to_string()),
        ];
        metrics::counter!("pubsub_sink_destination_records_published", labels.clone())
            .increment(more.records_published);
        metrics::counter!("pubsub_sink_destination_records_rejected", labels)
            .increment(more.records_rejected);
    }
}

/// Publishes the failures since the last time.
pub(crate) fn publish_failures(instance: &str, counted: Vec<(Code, u64)>) {
    for (code, more) in counted {
        let labels = vec![
            Label::new("instance", instance.to_owned()),
            Label::new("code", code.name()),
        ];
        metrics::counter!("pubsub_sink_failures", labels).increment(more);
    }
}

/// Publishes how long a queue's flushes took.
pub(crate) fn publish_flush_times(instance: &str, times: FlushTimes) {
    let label = || vec![Label::new("instance", instance.to_owned())];
    let seconds = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64();
    metrics::gauge!("pubsub_sink_dead_letter_flush_seconds", label()).set(seconds(times.last));
    metrics::gauge!("pubsub_sink_dead_letter_longest_flush_seconds", label())
        .set(seconds(times.longest));
}
