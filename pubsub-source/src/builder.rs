//! How a source is made.

mod assembly;

use std::time::{Duration, SystemTime};

use connector_core::{Budget, Limits, Restored, WallClock};
use gcp_wire::{Credentials, Endpoint, Service, SubscriptionName};

use crate::{
    decode::DecodeFailure,
    driver::Driver,
    error::BuildError,
    on_drop::OnDrop,
    settings::Settings,
    source::PubsubSource,
    start::SeekId,
    state::{SavedDeliveries, SourceState},
};

/// Settings of a source that is about to be built.
///
/// Every setting has a default; [`build`](Self::build) checks them all and connects to nothing.
#[derive(Debug)]
#[must_use = "a builder does nothing until build() is called"]
pub struct SourceBuilder {
    /// One per split; splits of one subscription are read as one.
    splits: Vec<SubscriptionName>,
    endpoint: Endpoint,
    credentials: Credentials,
    instance: Option<String>,
    restored: Vec<Restored<SourceState>>,
    /// The seek after which the source reads: what was saved before it is not recognised.
    sought: Option<SeekId>,
    decode_failure: DecodeFailure,
    settings: Settings,
    budget: Option<Budget>,
    wall: WallClock,
}

impl SourceBuilder {
    pub(crate) fn new(splits: impl IntoIterator<Item = SubscriptionName>) -> Self {
        Self {
            splits: splits.into_iter().collect(),
            endpoint: Endpoint::production(Service::Pubsub),
            credentials: Credentials::application_default(),
            instance: None,
            restored: Vec::new(),
            sought: None,
            decode_failure: DecodeFailure::default(),
            settings: Settings::default(),
            budget: None,
            wall: WallClock::default(),
        }
    }

    /// Where the service is. Default: Google's global endpoint.
    ///
    /// An endpoint that cannot be reached does not end the source: it is tried again, at most 10 s
    /// apart, and a warning names it with the cause. Nothing is lost meanwhile.
    ///
    /// An emulator is named here and nowhere else; the environment is read only by
    /// [`Endpoint::emulator_from_env`].
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// Who asks. Default: Google's application-default credentials. Never sent to an emulator.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// The name that tells this source apart from others of the same host. Default: the
    /// subscription's full name; a source of several subscriptions must be given one.
    ///
    /// It is saved with the state, and a state of another instance is refused: states that were
    /// swapped show up at once. All readers of one job that exchange their states have the same
    /// name. There is none to choose for several subscriptions: one made of their names would
    /// change, and refuse every saved state, as soon as a subscription is added.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// The states to go on from: of the newest epoch that was ever durable, and of all readers of
    /// the job. Default: none, a first start.
    ///
    /// Takes `Some(restored)`, `None`, or any other collection. What the states name is committed:
    /// it is acknowledged when it comes again, and not handed out.
    pub fn restore(mut self, restored: impl IntoIterator<Item = Restored<SourceState>>) -> Self {
        self.restored.extend(restored);
        self
    }

    /// The source reads after this seek.
    pub(crate) fn sought(mut self, sought: Option<SeekId>) -> Self {
        self.sought = sought;
        self
    }

    /// The number of pull streams of each split. Default: 1; at most 50 for each subscription.
    ///
    /// One stream carries about 10 MB/s from the service; more of them receive more, at the price
    /// of more connections. All of them share the limits of their subscription.
    pub fn streams(mut self, streams: usize) -> Self {
        self.settings.streams = streams;
        self
    }

    /// Hands the messages of each ordering key out in the order in which they were published.
    /// Default: false.
    ///
    /// For subscriptions with message ordering enabled; on any other the source ends with
    /// [`SourceError::Unordered`](crate::SourceError::Unordered). What comes out of a key are runs
    /// that go up without a gap: after a lapse, a release or a reconnect a key may go back, and then
    /// everything behind that point comes again, what is held included. Needs a single
    /// [stream](Self::streams) for each subscription. Without it, messages with keys are treated like
    /// all others.
    pub fn message_ordering(mut self, on: bool) -> Self {
        self.settings.message_ordering = on;
        self
    }

    /// The most deliveries of each subscription that are leased and not settled, over all streams.
    /// Default: 100,000.
    ///
    /// Throughput is at most this many per checkpoint interval. A delivery that was handed out
    /// costs only its ids, less than 230 bytes; the default is 23 MB at most.
    pub fn outstanding(mut self, messages: usize) -> Self {
        self.settings.outstanding = messages;
        self
    }

    /// The limit that the service is told until the first commit. Default: 1,000, or
    /// [`outstanding`](Self::outstanding) where that is less.
    ///
    /// A host that crashes before its first commit then burns delivery attempts of so many
    /// messages, not of all that are allowed outstanding. Afterwards the limit grows with need, up
    /// to [`outstanding`](Self::outstanding).
    pub fn first_outstanding(mut self, messages: usize) -> Self {
        self.settings.first_outstanding = messages;
        self
    }

    /// The most bytes of each subscription's messages that the service sends before they are
    /// acknowledged, over all streams. Default: no such limit.
    ///
    /// The service counts what was handed out as well, although only its ids are kept here; so this
    /// caps the throughput at so many bytes per checkpoint interval, and no default is right. What
    /// is received and not handed out has its own limit, [`buffer`](Self::buffer). Use this where
    /// the *host* keeps payloads until its checkpoint. The service passes it by one message of any
    /// size. Works with [`outstanding`](Self::outstanding), whichever is reached first; each stream
    /// is told an equal part, and a stream whose message limit grows is then opened after the old
    /// one has ended, not beside it.
    pub fn outstanding_bytes(mut self, bytes: u64) -> Self {
        self.settings.outstanding_bytes = Some(bytes);
        self
    }

    /// The most that is received and not handed out, in messages and bytes, over all subscriptions
    /// of the source. Default: 10,000 messages, 64 MiB.
    ///
    /// One response of each stream may go beyond it. Half of it is reserved for the subscriptions
    /// in equal parts, and the rest goes to those that need it. Within it no more is received than the host
    /// takes in 5 s: what waits here is leased, and out of reach of other subscribers.
    pub fn buffer(mut self, limits: Limits) -> Self {
        self.settings.buffer = limits;
        self
    }

    /// Shares a budget with other sources: what all of them together receive and have not handed
    /// out. Default: none, only this source's own [`buffer`](Self::buffer), which holds in any
    /// case.
    ///
    /// The source takes part under its [`instance`](Self::instance). It may always hold one response
    /// of each stream, and half of its equal part, however much the others hold; the rest goes to
    /// whoever asked first. When it finds no room for 10 s, an event names who holds most, and
    /// `budget_wait_seconds` in the stats tells for how long.
    ///
    /// Do not share one between a source and the sink it feeds: the sink would find no room for
    /// what the source has to hand out before it can give room back.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// The most that a paused subscription holds of what it received, in messages and bytes.
    /// Default: 2,000 messages and 16 MiB, or a quarter of the [`buffer`](Self::buffer) where that
    /// is less; never more than that quarter.
    ///
    /// With many subscriptions the equal share of each in the buffer is the limit instead, where
    /// that is less. Beyond it a paused subscription is parked, see
    /// [`pause`](PubsubSource::pause). More lets it go on without a pause when it is resumed;
    /// less leaves more for the others, and for other subscribers.
    pub fn paused_limit(mut self, limits: Limits) -> Self {
        self.settings.paused_limit = Some(limits);
        self
    }

    /// The longest lease that is asked for at once. Default: 60 s; 10 s to 600 s, whole seconds.
    ///
    /// Leases last three checkpoint intervals, at least 20 s and at most this. It is also how long
    /// messages stay invisible to everyone after a crash. With intervals beyond 20 s a longer one
    /// saves extensions. A subscription with exactly-once delivery gets 60 s at least.
    pub fn max_extension(mut self, lease: Duration) -> Self {
        self.settings.max_extension = lease;
        self
    }

    /// The longest a delivery is held before it is given back although its epoch is not committed.
    /// Default: 60 min.
    ///
    /// Its epoch keeps it, and the commit reports it as lapsed; a redelivery is handed out again.
    /// Must be longer than the time between checkpoints, and not shorter than
    /// [`max_extension`](Self::max_extension).
    pub fn max_hold(mut self, hold: Duration) -> Self {
        self.settings.max_hold = hold;
        self
    }

    /// How long after the first message a checkpoint must have been taken. Default: 10 min; zero
    /// waits for ever.
    ///
    /// A host that never calls `snapshot` would otherwise look like an idle subscription: nothing
    /// is acknowledged, and once everything allowed is outstanding nothing comes any more. The
    /// source ends with [`SourceError::Stalled`](crate::SourceError::Stalled). A host that settles
    /// messages one by one is not watched.
    pub fn stall_after(mut self, wait: Duration) -> Self {
        self.settings.stall_after = wait;
        self
    }

    /// How long nothing may be received because every pull stream fails, before the source ends with
    /// [`SourceError::Unreachable`](crate::SourceError::Unreachable). Default: `None`, it goes on
    /// trying, and warns once per doubling of the failures in a row.
    ///
    /// For failures that may pass, such as a service that is not reachable or a quota that is used
    /// up; what cannot pass ends a source at once. Counted for each subscription, from the first
    /// failure without an open stream on; a parked split does not count. What is held stays held for
    /// all that time, so a source that ends gives up no more than one that goes on.
    pub fn unreachable_after(mut self, wait: Option<Duration>) -> Self {
        self.settings.unreachable_after = wait;
        self
    }

    /// The most ids of durable epochs that are kept to recognise their messages. Default:
    /// 1,000,000, about 40 MB when full.
    ///
    /// Beyond it the oldest leave, are counted, and are handed out again if they come again.
    pub fn seen_limit(mut self, ids: usize) -> Self {
        self.settings.seen_limit = ids;
        self
    }

    /// How long a commit's receipt waits for the service's confirmation before it fails. Default:
    /// as long as it takes.
    ///
    /// The receipt then fails with
    /// [`CheckpointError::Unconfirmed`](connector_core::CheckpointError::Unconfirmed), which says
    /// how many deliveries are unconfirmed. Nothing is taken back: the source goes on
    /// acknowledging and extending them, and the next commit's receipt covers them again. Without
    /// it, a permission that was lost or an outage shows in the log and in the figures only.
    pub fn confirm_acks(mut self, wait: Duration) -> Self {
        self.settings.confirm_acks = Some(wait);
        self
    }

    /// What a state saves of the deliveries that its epoch covers. Default:
    /// [`SavedDeliveries::MessageIds`].
    pub fn saved_deliveries(mut self, saved: SavedDeliveries) -> Self {
        self.settings.saved_deliveries = saved;
        self
    }

    /// What becomes of a message that the decoder of [`PubsubSource::decode`] cannot read. Default:
    /// [`DecodeFailure::Fail`], since what is dropped or given back by mistake is harder to notice
    /// than a source that ended.
    pub fn decode_failure(mut self, policy: DecodeFailure) -> Self {
        self.decode_failure = policy;
        self
    }

    /// What becomes of uncommitted deliveries when the source is closed, dropped or ends with an
    /// error. Default: as with [`OnDrop::Release`], except that what was handed out is left to
    /// lapse where a dead-letter policy exists, as the deliveries themselves tell.
    ///
    /// Each release counts as a delivery attempt there, so a host that fails on a message at every
    /// start would have it moved to the dead-letter topic within seconds, together with everything
    /// that was handed out beside it.
    pub fn on_drop(mut self, choice: OnDrop) -> Self {
        self.settings.on_drop = Some(choice);
        self
    }

    /// How long closing may take. Default: 5 s.
    pub fn close_budget(mut self, budget: Duration) -> Self {
        self.settings.close_budget = budget;
        self
    }

    /// Says where the time of day comes from. Default: the system's clock. For tests that let
    /// leases pass in virtual time.
    ///
    /// A state says until when its ack ids are leased, by this clock.
    pub fn wall_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.wall = WallClock::new(clock);
        self
    }

    /// Builds the source and spawns its driver on the current runtime. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// [`BuildError::NoRuntime`] outside a tokio runtime, and whatever is wrong with the settings
    /// or the restored states, with the values named.
    pub fn build(self) -> Result<PubsubSource, BuildError> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        let (source, driver) = self.build_with_driver()?;
        drop(runtime.spawn(driver));
        Ok(source)
    }

    /// Builds the source, and leaves it to the caller to run its driver: one for all of its
    /// subscriptions.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the settings or the restored states, with the values named.
    pub fn build_with_driver(self) -> Result<(PubsubSource, Driver), BuildError> {
        assembly::assemble(self)
    }
}
