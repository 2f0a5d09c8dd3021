//! What a source has done, in numbers.

use std::time::Duration;

/// What a source has done and holds. Plain numbers, always on.
///
/// Counters count from the source's beginning; the rest says how things stand. The names are the
/// same as those of the metrics that the feature `metrics` publishes, with the prefix
/// `pubsub_source_`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Counter: deliveries received, redeliveries included.
    pub received: u64,
    /// Counter: bytes of payloads, attributes and keys received.
    pub received_bytes: u64,
    /// Counter: messages handed out to the host.
    pub handed_out: u64,
    /// Counter: deliveries whose acknowledgement was confirmed. A handed-out one whose lease was
    /// over by then counts as lapsed, unless the service answers for each ack id.
    pub acknowledged: u64,
    /// Counter: handed-out deliveries whose lease ended before they were confirmed.
    pub lapsed: u64,
    /// Counter: deliveries that were dropped since their lease ended before they were handed out.
    pub lapsed_in_buffer: u64,
    /// Counter: deliveries given back.
    pub released: u64,
    /// Counter: deliveries whose lease was extended, each extension counted.
    pub extended: u64,
    /// Counter: redeliveries of messages that were held, not handed out again.
    pub redelivered: u64,
    /// Counter: redeliveries of messages that were held, handed out again since an earlier message
    /// of their ordering key was.
    pub repeated: u64,
    /// Counter: messages with an ordering key that were dropped before they were handed out, since
    /// one before them comes again.
    pub dropped_behind: u64,
    /// Counter: deliveries that a durable epoch names, acknowledged and not handed out.
    pub recognised: u64,
    /// Counter: deliveries let go because they were held longer than `max_hold`, handed out or not, with
    /// those that waited behind them in the order of a key. They are given back; one that the host may
    /// have a part of is no longer extended.
    pub held_too_long: u64,
    /// Counter: ids that left the seen window early because it was full, and unfinished messages
    /// forgotten because there were more than 10,000.
    pub seen_overflowed: u64,
    /// Counter: records that a decoded source handed out.
    pub records: u64,
    /// Counter: records skipped since an earlier delivery of their message had handed them out.
    pub skipped_records: u64,
    /// Counter: messages that decoded to no record.
    pub without_records: u64,
    /// Counter: messages that could not be decoded, whatever became of them.
    pub decode_failures: u64,
    /// Counter: messages that could not be decoded and were acknowledged with their epoch.
    pub decode_dropped: u64,
    /// Counter: messages that could not be decoded and were given back.
    pub decode_nacked: u64,
    /// Counter: requests that had to be sent again.
    pub retried: u64,
    /// Counter: pull streams opened.
    pub streams_opened: u64,
    /// Counter: snapshots taken.
    pub snapshots: u64,
    /// Counter: commits whose deliveries all have a verdict.
    pub commits: u64,
    /// Counter: times a paused subscription gave back what it held.
    pub parks: u64,
    /// Counter: commits whose receipt failed since the service did not confirm in the time that
    /// `confirm_acks` gives it.
    pub unconfirmed_commits: u64,
    /// Gauge: pull streams whose server has begun to answer.
    pub open_streams: usize,
    /// Gauge: messages received and not handed out.
    pub buffered: usize,
    /// Gauge: bytes of the messages received and not handed out.
    pub buffered_bytes: usize,
    /// Gauge: deliveries leased and without a verdict.
    pub leased: usize,
    /// Gauge: ids in the seen window.
    pub seen: usize,
    /// Gauge: messages of which some records were handed out and not all.
    pub unfinished: usize,
    /// Gauge: epochs sealed and neither committed nor aborted.
    pub pending_checkpoints: usize,
    /// Gauge: commits that wait for verdicts.
    pub pending_commits: usize,
    /// Gauge: seconds since the oldest commit that waits was called.
    pub oldest_commit_seconds: f64,
    /// Gauge: the number of unacknowledged messages the server is told to send.
    pub told_limit: u64,
    /// Gauge: seconds that a lease lasts at present.
    pub lease_seconds: u64,
    /// Gauge: seconds since the oldest delivery that is held was received.
    pub oldest_held_seconds: f64,
    /// Gauge: seconds the last commit took from its call to its last verdict.
    pub commit_seconds: f64,
    /// Gauge: seconds since the budget that the source shares has had no room for it.
    pub budget_wait_seconds: f64,
    /// Gauge: subscriptions that the host has paused.
    pub paused: usize,
    /// Gauge: subscriptions among them whose streams are closed.
    pub parked: usize,
    /// Gauge: seconds since the host paused the subscription.
    pub paused_seconds: f64,
}

#[cfg(any(test, feature = "metrics"))]
/// A number by name, and whether it only grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Figure {
    Counter(u64),
    Gauge(f64),
}

impl Stats {
    #[cfg(any(test, feature = "metrics"))]
    /// Every figure by its name, in the order of the fields.
    pub(crate) fn figures(&self) -> Vec<(&'static str, Figure)> {
        use Figure::{Counter, Gauge};
        // Exact up to 2^53.
        #[expect(
            clippy::cast_precision_loss,
            reason = "gauges are floating-point numbers"
        )]
        let count = |number: usize| Gauge(number as f64);
        #[expect(
            clippy::cast_precision_loss,
            reason = "gauges are floating-point numbers"
        )]
        let number = |number: u64| Gauge(number as f64);
        vec![
            ("received", Counter(self.received)),
            ("received_bytes", Counter(self.received_bytes)),
            ("handed_out", Counter(self.handed_out)),
            ("acknowledged", Counter(self.acknowledged)),
            ("lapsed", Counter(self.lapsed)),
            ("lapsed_in_buffer", Counter(self.lapsed_in_buffer)),
            ("released", Counter(self.released)),
            ("extended", Counter(self.extended)),
            ("redelivered", Counter(self.redelivered)),
            ("repeated", Counter(self.repeated)),
            ("dropped_behind", Counter(self.dropped_behind)),
            ("recognised", Counter(self.recognised)),
            ("held_too_long", Counter(self.held_too_long)),
            ("seen_overflowed", Counter(self.seen_overflowed)),
            ("records", Counter(self.records)),
            ("skipped_records", Counter(self.skipped_records)),
            ("without_records", Counter(self.without_records)),
            ("decode_failures", Counter(self.decode_failures)),
            ("decode_dropped", Counter(self.decode_dropped)),
            ("decode_nacked", Counter(self.decode_nacked)),
            ("retried", Counter(self.retried)),
            ("streams_opened", Counter(self.streams_opened)),
            ("snapshots", Counter(self.snapshots)),
            ("commits", Counter(self.commits)),
            ("parks", Counter(self.parks)),
            ("unconfirmed_commits", Counter(self.unconfirmed_commits)),
            ("open_streams", count(self.open_streams)),
            ("buffered", count(self.buffered)),
            ("buffered_bytes", count(self.buffered_bytes)),
            ("leased", count(self.leased)),
            ("seen", count(self.seen)),
            ("unfinished", count(self.unfinished)),
            ("pending_checkpoints", count(self.pending_checkpoints)),
            ("pending_commits", count(self.pending_commits)),
            ("oldest_commit_seconds", Gauge(self.oldest_commit_seconds)),
            ("told_limit", number(self.told_limit)),
            ("lease_seconds", number(self.lease_seconds)),
            ("oldest_held_seconds", Gauge(self.oldest_held_seconds)),
            ("commit_seconds", Gauge(self.commit_seconds)),
            ("budget_wait_seconds", Gauge(self.budget_wait_seconds)),
            ("paused", count(self.paused)),
            ("parked", count(self.parked)),
            ("paused_seconds", Gauge(self.paused_seconds)),
        ]
    }

    /// These and those of another split, as the stats of a source that reads both.
    ///
    /// What each split counts for itself adds up; what the source does to all its splits at once,
    /// and what is a span of time, is the larger one.
    #[must_use]
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            received_bytes: self.received_bytes + other.received_bytes,
            handed_out: self.handed_out + other.handed_out,
            acknowledged: self.acknowledged + other.acknowledged,
            lapsed: self.lapsed + other.lapsed,
            lapsed_in_buffer: self.lapsed_in_buffer + other.lapsed_in_buffer,
            released: self.released + other.released,
            extended: self.extended + other.extended,
            redelivered: self.redelivered + other.redelivered,
            repeated: self.repeated + other.repeated,
            dropped_behind: self.dropped_behind + other.dropped_behind,
            recognised: self.recognised + other.recognised,
            held_too_long: self.held_too_long + other.held_too_long,
            seen_overflowed: self.seen_overflowed + other.seen_overflowed,
            records: self.records + other.records,
            skipped_records: self.skipped_records + other.skipped_records,
            without_records: self.without_records + other.without_records,
            decode_failures: self.decode_failures + other.decode_failures,
            decode_dropped: self.decode_dropped + other.decode_dropped,
            decode_nacked: self.decode_nacked + other.decode_nacked,
            retried: self.retried + other.retried,
            streams_opened: self.streams_opened + other.streams_opened,
            snapshots: self.snapshots.max(other.snapshots),
            commits: self.commits.max(other.commits),
            parks: self.parks + other.parks,
            open_streams: self.open_streams + other.open_streams,
            buffered: self.buffered + other.buffered,
            buffered_bytes: self.buffered_bytes + other.buffered_bytes,
            leased: self.leased + other.leased,
            seen: self.seen + other.seen,
            unfinished: self.unfinished + other.unfinished,
            unconfirmed_commits: self.unconfirmed_commits.max(other.unconfirmed_commits),
            pending_checkpoints: self.pending_checkpoints.max(other.pending_checkpoints),
            pending_commits: self.pending_commits.max(other.pending_commits),
            oldest_commit_seconds: self.oldest_commit_seconds.max(other.oldest_commit_seconds),
            told_limit: self.told_limit + other.told_limit,
            lease_seconds: self.lease_seconds.max(other.lease_seconds),
            oldest_held_seconds: self.oldest_held_seconds.max(other.oldest_held_seconds),
            commit_seconds: self.commit_seconds.max(other.commit_seconds),
            budget_wait_seconds: self.budget_wait_seconds.max(other.budget_wait_seconds),
            paused: self.paused + other.paused,
            parked: self.parked + other.parked,
            paused_seconds: self.paused_seconds.max(other.paused_seconds),
        }
    }

    pub(crate) fn seconds(span: Duration) -> f64 {
        span.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_field_and_stands_in_the_readme() {
        let readme = include_str!("../README.md");
        // The names as the compiler knows them.
        let fields = format!("{:#?}", Stats::default());
        let mut count = 0;
        for (name, figure) in Stats::default().figures() {
            count += 1;
            assert!(
                fields.contains(&format!("    {name}: ")),
                "{name} is no field"
            );
            let kind = match figure {
                Figure::Counter(_) => "counter",
                Figure::Gauge(_) => "gauge",
            };
            let row = format!("| `{name}` | {kind} |");
            assert!(readme.contains(&row), "the README lacks {row}");
        }
        assert_eq!(fields.lines().count() - 2, count, "every field is a figure");
        let rows = readme.lines().filter(|line| {
            line.starts_with("| `") && (line.contains("| counter |") || line.contains("| gauge |"))
        });
        assert_eq!(rows.count(), count, "the README names nothing else");
    }
}
