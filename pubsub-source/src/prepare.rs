//! The start of a job: once, before anybody reads.

mod admin;
mod error;
mod facts;
mod notice;
mod prepared;
mod procedure;
mod rules;
mod wishes;
mod work;

pub use admin::Step;
pub use error::{PrepareError, StoreSilent};
pub use prepared::Prepared;

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use connector_core::WallClock;
use gcp_wire::{Connection, ConnectionOptions, Credentials, Endpoint, Service, SubscriptionName};

use crate::{
    builder::SourceBuilder,
    creation::SubscriptionCreation,
    decode::DecodeFailure,
    error::BuildError,
    instance::instance,
    plan::SplitPlan,
    start::{SeekId, SeekTarget, StartPosition, StartStore},
};
use admin::Admin;
use procedure::Procedure;
use wishes::Wishes;
use work::Work;

/// Begins to prepare a job that reads by `plan`: to be run **once per job and start**, by whoever
/// owns the job, before any of its readers is built.
///
/// ```
/// # use gcp_emulator::Emulator;
/// use pubsub_source::{Endpoint, SplitPlan, StartPosition, SubscriptionCreation, Unrecorded, prepare};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let emulator = Emulator::builder().start();
/// # emulator.create_topic("projects/shop/topics/orders")?;
/// # let endpoint = Endpoint::in_memory(emulator.dialer());
/// let orders: pubsub_source::SubscriptionName = "projects/shop/subscriptions/orders".parse()?;
/// let plan = SplitPlan::new([orders.clone()], 2)?;
/// let creation = SubscriptionCreation::builder("projects/shop/topics/orders".parse()?).build()?;
///
/// let prepared = prepare(&plan)
///     .endpoint(endpoint.clone())
///     .create(orders, creation)               // only this one, if it is missing
///     .start(StartPosition::Earliest)
///     .run(&mut Unrecorded)                   // better: your StartStore, see there
///     .await?;
///
/// // In each process of the job, with `prepared` handed over as JSON or the like:
/// let second = prepared.reader(1, 2)?.ok_or("there is something to read")?;
/// let source = second.endpoint(endpoint).build()?;
/// # Ok(())
/// # }
/// ```
pub fn prepare(plan: &SplitPlan) -> Preparation {
    Preparation {
        plan: plan.clone(),
        endpoint: Endpoint::production(Service::Pubsub),
        credentials: Credentials::application_default(),
        instance: None,
        start: StartPosition::Continue,
        creations: BTreeMap::new(),
        decode_failure: DecodeFailure::Fail,
        progress_timeout: Duration::from_secs(60),
    }
}

/// Settings of a job's start. See [`prepare`].
///
/// # What it does
///
/// 1. Reads the record of the start. A job that has started before is checked again, and never
///    sought again.
/// 2. Looks at every subscription, and at the topics of those that are to be created, and refuses by
///    name what the job could not read. Nothing is changed before all of it is known to be right.
/// 3. Creates what is missing, where settings were given for that one. That somebody else
///    created it meanwhile is success; then the other's settings are checked. What exists is never
///    changed.
/// 4. Records where it is about to seek, seeks every subscription, and records that it is done. A
///    start that is cut short anywhere in between seeks to the *recorded* target when it
///    comes again.
///
/// What may pass is tried again; see [`progress_timeout`](Self::progress_timeout). What was checked
/// is so at the start: settings that are changed later are not noticed by it.
#[derive(Debug)]
#[must_use = "nothing is prepared until run() is called"]
pub struct Preparation {
    plan: SplitPlan,
    endpoint: Endpoint,
    credentials: Credentials,
    instance: Option<String>,
    start: StartPosition,
    creations: BTreeMap<SubscriptionName, SubscriptionCreation>,
    decode_failure: DecodeFailure,
    progress_timeout: Duration,
}

impl Preparation {
    /// Where the service is. Default: Google's global endpoint.
    ///
    /// The readers get theirs from their own builders.
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// Who asks. Default: Google's application-default credentials. Never sent to an emulator.
    ///
    /// Checking needs `pubsub.subscriptions.get` (`roles/pubsub.viewer`), seeking
    /// `pubsub.subscriptions.consume` (`roles/pubsub.subscriber`), creating
    /// `pubsub.subscriptions.create` on the project and `pubsub.topics.attachSubscription` on the
    /// topic (`roles/pubsub.editor`). Readers need no more than to consume.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// The name of the job, under which its readers save their states and its start is recorded.
    /// Default: the subscription's full name; a job with several subscriptions must be given one.
    ///
    /// States and records of another name are refused: what was swapped shows up at once.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// Where to begin, at the job's first start. Default: [`StartPosition::Continue`], which seeks
    /// nothing.
    pub fn start(mut self, position: StartPosition) -> Self {
        self.start = position;
        self
    }

    /// Allows to create `subscription` if it is missing. Default: a missing subscription is an error.
    ///
    /// The last settings given for a subscription count. They are never compared with those of a
    /// subscription that exists.
    pub fn create(
        mut self,
        subscription: SubscriptionName,
        creation: SubscriptionCreation,
    ) -> Self {
        self.creations.insert(subscription, creation);
        self
    }

    /// What the readers do with a message that cannot be decoded. Default: [`DecodeFailure::Fail`].
    ///
    /// With [`DecodeFailure::Nack`] a subscription without a dead-letter policy is refused: such a
    /// message would come again for ever. The readers have this policy unless their builders are told
    /// another ([`SourceBuilder::decode_failure`]).
    pub fn decode_failure(mut self, policy: DecodeFailure) -> Self {
        self.decode_failure = policy;
        self
    }

    /// How long nothing may go well before the start is given up. Default: 60 s; longer than nothing.
    ///
    /// It bounds each call to the service, counted from its first attempt or from when any other last
    /// succeeded, and each call to the store.
    pub fn progress_timeout(mut self, limit: Duration) -> Self {
        self.progress_timeout = limit;
        self
    }

    /// Prepares the job.
    ///
    /// # Errors
    ///
    /// A [`PrepareError`] that says what is wrong, what was done, and what to do. Starting again
    /// is always right.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the start wherever it was; what was sent may take effect. Starting
    /// again goes on from the record.
    pub async fn run<S: StartStore>(self, store: &mut S) -> Result<Prepared, PrepareError> {
        if self.progress_timeout.is_zero() {
            return Err(PrepareError::from(BuildError::Setting {
                setting: "progress_timeout",
                found: "0s".to_owned(),
                allowed: "longer than nothing",
            }));
        }
        // Pinned before anything else: what is published while the start is checked is not dropped.
        let moment = WallClock::default()
            .now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let wishes = Wishes {
            instance: instance(self.instance, self.plan.subscriptions().iter())?,
            target: SeekTarget::of(&self.start, moment)?,
            moment,
            fresh: SeekId(uuid::Uuid::new_v4().as_u128()),
            plan: self.plan,
            creations: self.creations,
            decode_failure: self.decode_failure,
        };
        let connection = Connection::unary(
            self.endpoint,
            self.credentials,
            ConnectionOptions::default(),
        );
        let connection = connection.map_err(BuildError::from)?;
        let admin = Admin::new(connection, self.progress_timeout);
        let procedure = Procedure::new(wishes);
        Work::new(procedure, &admin, self.progress_timeout)
            .run(store)
            .await
    }

    /// Prepares a job with one reader, and begins to build that reader, with the same endpoint and
    /// credentials.
    ///
    /// # Errors
    ///
    /// [`PrepareError::Shared`] when the plan has more readers: each of them would seek what the others
    /// read. Else those of [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// That of [`run`](Self::run).
    pub async fn only_reader<S: StartStore>(
        self,
        store: &mut S,
    ) -> Result<SourceBuilder, PrepareError> {
        let readers = self.plan.readers();
        if readers > 1 {
            return Err(PrepareError::Shared { readers });
        }
        let (endpoint, credentials) = (self.endpoint.clone(), self.credentials.clone());
        let prepared = self.run(store).await?;
        match prepared.reader(0, 1)? {
            Some(builder) => Ok(builder.endpoint(endpoint).credentials(credentials)),
            None => unreachable!("a plan gives its only reader everything, and is never empty"),
        }
    }
}
