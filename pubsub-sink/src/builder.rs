//! From settings to a sink.

mod build;
mod layers;
mod restored;
mod staging;

#[cfg(any(test, fuzzing))]
pub(crate) use restored::resumed;

use std::{num::NonZeroU32, time::Duration};

use connector_core::{
    Budget, DestinationResolver, Encode, Fail, FailureHandler, Fixed, Limits, Restored,
    TraceContext, backoff::Backoff,
};
use gcp_wire::{ConnectionOptions, Credentials, Endpoint, Service, TopicName};

use crate::{
    MissingTopics, PublishMessage, SinkState,
    settings::{IdentityAttributes, Settings},
    trace::TraceOf,
};

/// Settings of a [`PubsubSink`](crate::PubsubSink).
///
/// Nothing is read, connected or sent before the sink's first poll. What a setting may be is checked
/// by [`build`](Self::build), and what contradicts another is refused with both names.
#[must_use = "a builder does nothing until build() is called"]
pub struct SinkBuilder<R> {
    encoder: Box<dyn Encode<R, PublishMessage>>,
    resolver: Option<Box<dyn DestinationResolver<R, TopicName>>>,
    handler: Box<dyn FailureHandler>,
    endpoint: Endpoint,
    credentials: Credentials,
    connection: ConnectionOptions,
    instance: String,
    settings: Settings,
    retry_for: Option<Duration>,
    stage: Option<Limits>,
    quarantine: Option<Limits>,
    identity_attributes: Option<IdentityAttributes>,
    trace: Option<TraceOf<R>>,
    limits: Option<Limits>,
    budget: Option<Budget>,
    restored: Vec<Restored<SinkState>>,
}

impl<R> SinkBuilder<R> {
    pub(crate) fn new(encoder: Box<dyn Encode<R, PublishMessage>>) -> Self {
        Self {
            encoder,
            resolver: None,
            handler: Box::new(Fail),
            endpoint: Endpoint::production(Service::Pubsub),
            credentials: Credentials::application_default(),
            connection: ConnectionOptions::default()
                .client("pubsub-sink", env!("CARGO_PKG_VERSION")),
            instance: "0".to_owned(),
            settings: Settings::default(),
            retry_for: None,
            stage: None,
            quarantine: None,
            identity_attributes: None,
            trace: None,
            limits: None,
            budget: None,
            restored: Vec::new(),
        }
    }

    /// Sends every record to one topic. Of this and [`resolve`](Self::resolve) the last call counts.
    pub fn topic(mut self, topic: TopicName) -> Self
    where
        R: 'static,
    {
        self.resolver = Some(Box::new(Fixed::new(topic)));
        self
    }

    /// Chooses the topic of each record, before the record is encoded.
    ///
    /// A closure may answer a `TopicName`, an `Option` of one, or a `Result`. None ends the sink: it
    /// is a mistake in the configuration, and a failure handler that drops would drop everything. An
    /// `Err`, such as a name in the record that does not parse, is that record's own failure and goes
    /// to the failure handler.
    pub fn resolve(mut self, resolver: impl DestinationResolver<R, TopicName> + 'static) -> Self {
        self.resolver = Some(Box::new(resolver));
        self
    }

    /// What becomes of records that do not encode, break a limit, or are refused by the service for
    /// themselves alone. Default [`Fail`]: the sink ends, and nothing is lost without being asked.
    ///
    /// Outages and mistakes in the configuration never get there. The verdict is waited for without
    /// holding anything else up, except that messages of the same ordering key wait behind it.
    pub fn on_rejected(mut self, handler: impl FailureHandler) -> Self {
        self.handler = Box::new(handler);
        self
    }

    /// The server. Default: the service in production. The environment variable of the emulator is
    /// read only by [`Endpoint::emulator_from_env`].
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// The credentials. Default: Google's application-default ones. Emulators are sent none.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// HTTP/2 connections, 1 to 256. Default 1.
    ///
    /// One carries 100 requests at a time, which with 1,000 messages each is more than a process can
    /// encode. More help only with many small requests over a long round trip.
    pub fn channels(mut self, channels: usize) -> Self {
        self.connection = self.connection.channels(channels);
        self.settings.channels = channels;
        self
    }

    /// Whether requests are compressed with gzip. Default false.
    ///
    /// Saves network where payloads compress well. It costs CPU time at each attempt, in the
    /// driver's task, where nothing else of the sink moves meanwhile; so it is off unless the network
    /// is what limits. Requests of less than 240 bytes leave as they are. What
    /// [`batch_bytes`](Self::batch_bytes) and [`limits`](Self::limits) count are the bytes before
    /// compression.
    pub fn gzip(mut self, on: bool) -> Self {
        self.connection = self.connection.gzip(on);
        self
    }

    /// The name that tells this sink from others of the same host, in saved states, metrics and
    /// events. Default `0`. Two Pub/Sub sinks of a host need a name each: with one name, each would
    /// take the other's state.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = name.into();
        self
    }

    /// What may be accepted and without a verdict at a time, in messages and in encoded bytes.
    /// Default 1,000 messages and 64 MiB.
    ///
    /// The sink has room while it is *below* both, so a message larger than the whole limit is still
    /// published, alone. More messages give larger requests and more throughput over a long round
    /// trip; bytes are the memory the sink may hold. Not together with [`budget`](Self::budget).
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Shares a budget with other connectors instead of having [`limits`](Self::limits) of its own.
    ///
    /// Do not share one with the source that feeds this sink: the source would hold it all until a
    /// checkpoint that never comes, since this sink has no room.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// The most messages in a request, 1 to 1,000. Default 1,000, the service's limit.
    ///
    /// A request leaves as soon as fewer than [`in_flight`](Self::in_flight) are under way, so this
    /// bounds a batch and delays none.
    pub fn batch_messages(mut self, messages: usize) -> Self {
        self.settings.batch_messages = messages;
        self
    }

    /// The most encoded bytes in a request, its topic included, 1 to 10,000,000. Default
    /// 10,000,000, the service's limit.
    ///
    /// A message above it (and below the service's limit) is a request of its own.
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.settings.batch_bytes = bytes;
        self
    }

    /// How long a batch waits for company although it could leave. Default zero.
    ///
    /// Batches grow by themselves while requests are under way, so a linger only helps to save
    /// requests at low rates. It ends at once when a snapshot, a flush, a close, or the lack of room
    /// waits for what is batched. A staged sink never lingers: all of a commit is there at once.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.settings.linger = linger;
        self
    }

    /// Requests to one topic under way at a time, at least 1. Default 4. Of one ordering key there
    /// is never more than one.
    ///
    /// Four keep a connection busy over any round trip that a batch of messages takes longer to
    /// gather than to send; more make smaller batches.
    pub fn in_flight(mut self, requests: usize) -> Self {
        self.settings.in_flight = requests;
        self
    }

    /// Whether messages may have ordering keys. Default false: a message with a key then ends the
    /// sink, because its order would silently not be kept.
    ///
    /// Messages of one key and topic are stored in the order in which this sink accepted them; route
    /// equal keys to one sink. A failed request is then tried for as long as anything else completes
    /// ([`progress_timeout`](Self::progress_timeout) is the end), so
    /// [`retry_for`](Self::retry_for) is refused beside it. Subscribers see the order only on a
    /// subscription with ordering, and only when all is published through one region: use
    /// [`Endpoint::regional`].
    pub fn message_ordering(mut self, on: bool) -> Self {
        self.settings.ordering = on;
        self
    }

    /// How long a request that fails in a way that may pass is sent again, from its first attempt
    /// on. Default 600 s, as Google's publishers do. Then the sink ends.
    pub fn retry_for(mut self, total: Duration) -> Self {
        self.retry_for = Some(total);
        self
    }

    /// The pauses between attempts. Default 100 ms, doubling up to 60 s; each ±25 %. A wait that the
    /// service asks for counts where it is longer, up to the cap of the schedule.
    pub fn retry_delays(mut self, delays: Backoff) -> Self {
        self.settings.retry.delays = delays;
        self
    }

    /// The pauses after RESOURCE_EXHAUSTED. Default 1 s, doubling up to 60 s; each ±25 %. Longer
    /// than others, because a quota refills over a minute and early attempts count against it.
    pub fn quota_delays(mut self, delays: Backoff) -> Self {
        self.settings.retry.quota_delays = delays;
        self
    }

    /// The time each attempt may take, at least 1 ms. Default 5 s, doubling up to 60 s.
    pub fn attempt_deadlines(mut self, deadlines: Backoff) -> Self {
        self.settings.retry.deadlines = deadlines;
        self
    }

    /// How long nothing may complete while the host waits for room, a snapshot, a flush or a close, or
    /// a staged sink for what was committed, by a commit or a restore. Default 600 s. Then the sink
    /// ends; a warning comes after each tenth of it.
    ///
    /// Bounds a standstill, not a slow service: every message that is stored starts it anew. For what
    /// a staged sink has committed, a snapshot beside it does not, nor does a flush of the failure
    /// handler that fails.
    pub fn progress_timeout(mut self, timeout: Duration) -> Self {
        self.settings.progress_timeout = timeout;
        self
    }

    /// The budget of [`close`](crate::PubsubSink::close). Default 30 s.
    pub fn close_timeout(mut self, timeout: Duration) -> Self {
        self.settings.close_timeout = timeout;
        self
    }

    /// What is done about a topic that does not exist. Default: it is created, see
    /// [`MissingTopics`].
    pub fn missing_topics(mut self, missing: MissingTopics) -> Self {
        self.settings.missing_topics = missing;
        self
    }

    /// Topics that may be in use at a time, at least 1. Default 100.
    ///
    /// When another is needed, the least recently used one with nothing under way is released; with
    /// none such, the sink admits no record until there is one. What a topic costs is a few hundred
    /// bytes and its batches; the bound keeps that from growing with the number of names.
    pub fn max_destinations(mut self, destinations: usize) -> Self {
        self.settings.max_destinations = destinations;
        self
    }

    /// How long an unused topic is kept. Default one hour.
    pub fn idle_destinations(mut self, idle: Duration) -> Self {
        self.settings.idle_destinations = idle;
        self
    }

    /// Keeps numbers of its own for each of the first `topics` topics of a run, see
    /// [`destination_stats`](crate::PubsubSink::destination_stats). Default 0: none.
    ///
    /// Each topic costs some hundred bytes for as long as the sink lives, and with the feature
    /// `metrics` two time series wherever those are kept; so the number is bounded, and topics beyond
    /// it count in the sums only.
    pub fn destination_stats(mut self, topics: usize) -> Self {
        self.settings.destination_stats = topics;
        self
    }

    /// How many messages in a row the service may refuse before the sink ends, or none for no bound.
    /// Default 100.
    ///
    /// Counts messages that were refused alone, over all topics; any message stored starts it anew.
    /// So many in a row are a wrong schema or a wrong topic rather than wrong data, and a handler
    /// that drops would go on dropping. The last one is handed over before the sink ends.
    ///
    /// Staged messages are refused after their commit, when ending the sink would help nobody: they
    /// would come again with every restart. They do not end it; those that the handler does not take
    /// over are kept aside, and [`quarantine`](Self::quarantine) bounds that.
    pub fn max_consecutive_rejections(mut self, most: Option<NonZeroU32>) -> Self {
        self.settings.max_consecutive_rejections = most;
        self
    }

    /// Says in which trace a record is published, for its consumers to go on with. Default: none.
    ///
    /// The position goes into the attribute
    /// [`googclient_traceparent`](connector_core::trace::TRACEPARENT), which Google's own clients
    /// read, and replaces one that the encoder put there; a record without a position keeps the
    /// encoder's. Whichever tracing library the host uses, a [`TraceContext`] is made of its three
    /// numbers. For a sink behind a source that is usually the position the message came with. The
    /// sink's own requests are spans of `tracing`, named `publish`.
    pub fn trace_context(
        mut self,
        context_of: impl FnMut(&R) -> Option<TraceContext> + Send + 'static,
    ) -> Self {
        self.trace = Some(Box::new(context_of));
        self
    }

    /// Goes on from a saved state: nothing on a first start, one `Restored` after a restart.
    ///
    /// The state is of the newest epoch that was ever durable, and of a sink with the same
    /// [`instance`](Self::instance). Epochs go on above the restored one. What a staged sink's state
    /// names is published by itself, from the first poll on, unless the `Restored` says `settled`;
    /// a message that several states name is published once. A flushing sink refuses a state that
    /// names messages: it could not save them again.
    pub fn restore(mut self, states: impl IntoIterator<Item = Restored<SinkState>>) -> Self {
        self.restored.extend(states);
        self
    }
}

impl<R> std::fmt::Debug for SinkBuilder<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SinkBuilder")
            .field("instance", &self.instance)
            .field("endpoint", &self.endpoint)
            .field("credentials", &self.credentials)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
