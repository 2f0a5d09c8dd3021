//! What a sink did and holds, as plain numbers.

/// Declares the numbers once: the struct, and their names for metrics and documentation.
macro_rules! stats {
    ($($(#[doc = $doc:literal])+ $kind:ident $name:ident,)+) => {
        /// What a sink did and holds, as plain numbers.
        ///
        /// Counters count from the build of the sink. With the feature `metrics` the same numbers are
        /// published under `pubsub_sink_<name>`, labelled with the sink's instance.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Stats {
            /// The names of all numbers, in the order of the fields.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];
        }

        #[cfg(feature = "metrics")]
        impl Stats {
            /// Every number with its metric's name and kind.
            pub(crate) fn numbers(&self) -> Vec<crate::metrics::Number> {
                vec![$(crate::metrics::Number {
                    metric: concat!("pubsub_sink_", stringify!($name)),
                    kind: crate::metrics::Kind::$kind,
                    value: self.$name,
                }),+]
            }
        }
    };
}

stats! {
    /// Records accepted: those that a request or the failure handler gets. Counted once, however
    /// often a message is sent.
    counter records_accepted,
    /// Their encoded size in bytes.
    counter bytes_accepted,
    /// Records that the encoder skipped.
    counter records_skipped,
    /// Records that the service confirmed.
    counter records_published,
    /// Records that were handed to the failure handler, whatever it decided.
    counter records_rejected,
    /// Messages that a saved state named and that were not known as settled.
    counter records_restored,
    /// Publish requests sent, attempts that failed included.
    counter requests_sent,
    /// Publish requests that failed in a way that is tried again.
    counter requests_retried,
    /// Publish requests that were refused and divided to find the message at fault.
    counter requests_divided,
    /// Topics that did not exist and were created.
    counter topics_created,
    /// Destinations released: idle, or the least recently used one when another was needed.
    counter destinations_released,
    /// Closes that ran out of time with messages left: 0 or 1.
    counter closes_abandoned,
    /// Records accepted that have no verdict yet.
    gauge in_flight_records,
    /// Their encoded size in bytes.
    gauge in_flight_bytes,
    /// Of these, messages that wait for a commit.
    gauge staged_records,
    /// Their encoded size in bytes.
    gauge staged_bytes,
    /// Messages kept aside for the operator.
    gauge quarantined_records,
    /// Publish requests without a verdict, those waiting for their next attempt included.
    gauge in_flight_requests,
    /// Records that wait for their topic to exist.
    gauge parked_records,
    /// Rejected records that wait for the failure handler's verdict.
    gauge pending_verdicts,
    /// Destinations in use.
    gauge destinations,
    /// Confirmed rejections since the last message that the service stored.
    gauge consecutive_rejections,
}

/// What a sink did for one topic.
///
/// Counts from the build of the sink, also over times in which the topic was not in use. With the
/// feature `metrics` the same numbers are published under `pubsub_sink_destination_<name>`, labelled
/// with the sink's instance and the topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DestinationStats {
    /// Records that the service confirmed.
    pub records_published: u64,
    /// Records for the topic that were handed to the failure handler, whatever it decided.
    pub records_rejected: u64,
}

impl DestinationStats {
    /// The names of all numbers, in the order of the fields.
    pub const NAMES: &'static [&'static str] = &["records_published", "records_rejected"];
}
