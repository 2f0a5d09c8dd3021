//! How a sink is set up.

mod patience;
mod reach;
pub(crate) mod restored;
mod sink_driver;
mod staging;
mod traffic;

pub use sink_driver::SinkDriver;

use std::fmt;
use std::sync::Arc;

use connector_core::{
    Budget, DestinationResolver, Encode, Fail, FailureHandler, Fixed, Limits, Receipt, Restored,
    WallClock,
};
use gcp_wire::{Connection, ConnectionOptions, Credentials, Endpoint, QueueName, Service};

use crate::driver::{Driver, Shared, clock};
use crate::error::BuildError;
use crate::event;
use crate::machine::Machine;
use crate::naming::{self, KeyOf, Naming, TaskKey};
use crate::options::Options;
use crate::sink::{CloudTasksSink, Preparation};
use crate::state::{CONNECTOR, SinkState};
use crate::task::{AllowedHosts, Task};

/// Sets a [`CloudTasksSink`] up.
///
/// Made by [`CloudTasksSink::builder`]. A queue ([`queue`](Self::queue) or
/// [`resolve`](Self::resolve)) is required; everything else has a default. Whatever takes two
/// settings to judge is checked by [`build`](Self::build), and refused with both named.
#[must_use = "nothing is created before build()"]
pub struct SinkBuilder<R> {
    encode: Box<dyn Encode<R, Task>>,
    resolve: Option<Box<dyn DestinationResolver<R, QueueName>>>,
    /// The queue of every record, where there is one.
    queue: Option<QueueName>,
    key: Option<KeyOf<R>>,
    minted: bool,
    hosts: Option<Vec<String>>,
    handler: Box<dyn FailureHandler>,
    endpoint: Endpoint,
    credentials: Credentials,
    options: Options,
    /// The setting by which the limits were changed.
    limited_by: Option<&'static str>,
    /// A setting that is for sinks that stage, and was given.
    staged_by: Option<&'static str>,
    keep_expired: bool,
    wall: WallClock,
    budget: Option<Budget>,
    restored: Vec<Restored<SinkState>>,
}

impl<R> SinkBuilder<R> {
    pub(crate) fn new(encode: Box<dyn Encode<R, Task>>) -> Self {
        Self {
            encode,
            resolve: None,
            queue: None,
            key: None,
            minted: false,
            hosts: None,
            handler: Box::new(Fail),
            endpoint: Endpoint::production(Service::CloudTasks),
            credentials: Credentials::application_default(),
            options: Options::default(),
            limited_by: None,
            staged_by: None,
            keep_expired: false,
            wall: WallClock::default(),
            budget: None,
            restored: Vec::new(),
        }
    }

    /// Puts every task into one queue. Replaces an earlier `queue` or [`resolve`](Self::resolve).
    ///
    /// Queues are never created: one with the service's default rates would defeat the pacing that
    /// a queue is there for. A missing queue ends the sink with an error that names it.
    pub fn queue(self, queue: QueueName) -> Self
    where
        R: 'static,
    {
        let mut builder = self.resolve(Fixed::new(queue.clone()));
        builder.queue = Some(queue);
        builder
    }

    /// Chooses the queue of each record, before the record is encoded. Replaces an earlier
    /// [`queue`](Self::queue) or `resolve`.
    ///
    /// A resolver that names no queue ends the sink: that is a mistake in the configuration, and a
    /// failure handler could drop a whole stream for it. A queue costs the sink nothing, so
    /// sharding over several is the way past the 500 tasks a second that one queue dispatches;
    /// [`connector_core::shard()`] spreads keys evenly.
    pub fn resolve(mut self, resolver: impl DestinationResolver<R, QueueName> + 'static) -> Self {
        self.resolve = Some(Box::new(resolver));
        self.queue = None;
        self
    }

    /// Names each task by a key of its record: the task's id is the key's SHA-256. Default: the
    /// service names tasks, which is fastest.
    ///
    /// With names a record that comes again, after a restore or a retry, makes no second task while
    /// the first exists or its name is retained: the answer ALREADY_EXISTS is success, counted as
    /// `duplicates`. The window starts when the task *is executed or deleted* (a task scheduled far
    /// ahead keeps its name until then and for the window on top); published figures for it range
    /// from about 1 hour to 24 hours, so rely on no more than one hour.
    ///
    /// A key stands for one unchanging task: the service keeps the first one whatever a second one
    /// says. Put a version into the key when changed data must make a new task. The queue is part of
    /// a name: the same key in two queues makes two tasks. A record without a key ends the sink,
    /// one whose key cannot be read goes to the failure handler. Naming costs the service a lookup
    /// for each creation.
    ///
    /// Excludes [`minted_names`](Self::minted_names).
    pub fn task_id<K: Into<TaskKey>>(
        mut self,
        mut key: impl FnMut(&R) -> K + Send + 'static,
    ) -> Self {
        self.key = Some(Box::new(move |record| key(record).into()));
        self
    }

    /// Names each task at random when its record is accepted. Default: the service names tasks,
    /// which is fastest.
    ///
    /// Then a retry after a lost answer cannot create a second task, for as long as this sink lives;
    /// a record that comes again after a restore still makes another task. Excludes
    /// [`task_id`](Self::task_id).
    pub const fn minted_names(mut self) -> Self {
        self.minted = true;
        self
    }

    /// Bounds an encoded task, its name included; a larger one is a rejection. `None` sends whatever
    /// there is. Default: 1,048,571 bytes, the largest task that the service was seen to store.
    ///
    /// What the service adds itself comes on top, so what the default refuses, the service refuses
    /// for certain; the documented 100 KB are not enforced. A smaller limit protects a target or a
    /// budget, a larger one is for a service that has come to take more.
    pub fn largest_task(mut self, bytes: impl Into<Option<usize>>) -> Self {
        self.options.largest_task = bytes.into();
        self
    }

    /// Decides what becomes of rejected records. Default: [`Fail`], which ends the sink at the
    /// first, so that nothing is lost without being asked.
    ///
    /// A rejected record's payload is the whole encoded task, with its headers: it may hold
    /// credentials.
    pub fn on_rejected(mut self, handler: impl FailureHandler) -> Self {
        self.handler = Box::new(handler);
        self
    }

    /// Says where the service is. Default: Cloud Tasks in production. The environment is never
    /// asked; [`Endpoint::emulator_from_env`] is there for hosts that want that.
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// Says who creates the tasks. Default: application-default credentials, looked up at the first
    /// call. An emulator is never sent any.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// Names this sink among several of its host. Default: `0`. A saved state restores only
    /// the sink whose name it carries, so two Cloud Tasks sinks of a host need a name each: with one
    /// name, each would take the other's state.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.options.instance = name.into();
        self
    }

    /// Bounds the records accepted and without a verdict, parked ones included. Default: 1,000
    /// records and 64 MiB of encoded requests: at the 210 to 400 tasks a second that one channel
    /// was measured at, 1,000 records are less than 5 s of work, far within an attempt's deadline.
    ///
    /// More of them hide longer hiccups and cost memory; beyond 100 per channel they wait for a
    /// stream. A record is admitted below the limit, so that one larger than it is not stuck.
    /// Excludes [`budget`](Self::budget).
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self.limited_by = Some("limits");
        self
    }

    /// Bounds the number of records accepted and without a verdict, and leaves the bytes as they
    /// are: the first half of [`limits`](Self::limits). Default: 1,000. Excludes
    /// [`budget`](Self::budget).
    pub const fn in_flight(mut self, records: usize) -> Self {
        self.options.limits.items = records;
        self.limited_by = Some("in_flight");
        self
    }

    /// Shares a budget with other connectors, instead of limits of its own. Not with the source
    /// that feeds this sink, nor with the sink behind its failure handler: each would wait for room
    /// that only the other can make.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Keeps numbers of its own for each of the first `queues` queues of a run, see
    /// [`destination_stats`](crate::CloudTasksSink::destination_stats). Default 0: none.
    ///
    /// Each queue costs some hundred bytes for as long as the sink lives, and with the feature
    /// `metrics` three time series wherever those are kept; so the number is bounded, and queues
    /// beyond it count in the sums only.
    pub const fn destination_stats(mut self, queues: usize) -> Self {
        self.options.destination_stats = queues;
        self
    }

    /// Restores the newest state that was ever durable: the next epochs must lie above it. Takes an
    /// `Option`, for a first start, as well as a list.
    ///
    /// In [`Delivery::Staged`](crate::Delivery::Staged) the tasks that the states name are committed
    /// by the sink itself, at
    /// once ([`restored`](CloudTasksSink::restored) is the receipt); a task that several states name
    /// is created once. A state goes to one sink only. Of a state whose epoch is marked as settled
    /// nothing is created again, and nothing expires.
    pub fn restore(mut self, restored: impl IntoIterator<Item = Restored<SinkState>>) -> Self {
        self.restored.extend(restored);
        self
    }

    /// Builds the sink and spawns its driver on the current tokio runtime. Connects at the first
    /// record.
    ///
    /// # Errors
    ///
    /// A [`BuildError`]; nothing was connected to or sent.
    pub fn build(self) -> Result<CloudTasksSink<R>, BuildError> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        let (sink, driver) = self.build_with_driver()?;
        drop(runtime.spawn(driver));
        Ok(sink)
    }

    /// Builds the sink, and its driver for a host that places it itself.
    ///
    /// The driver must be polled until it ends, and not in the same `select!` as an inline await of
    /// anything of the sink. Dropping it ends the sink.
    ///
    /// # Errors
    ///
    /// A [`BuildError`]; nothing was connected to or sent.
    pub fn build_with_driver(self) -> Result<(CloudTasksSink<R>, SinkDriver), BuildError> {
        let Self {
            encode,
            resolve,
            queue,
            key,
            minted,
            hosts,
            handler,
            endpoint,
            credentials,
            options,
            limited_by,
            staged_by,
            keep_expired,
            wall,
            budget,
            restored,
        } = self;
        options.check()?;
        let resolve = resolve.ok_or(BuildError::NoDestination)?;
        let naming = match (key, minted) {
            (Some(_), true) => {
                return Err(BuildError::Conflict {
                    first: "task_id",
                    second: "minted_names",
                });
            }
            (Some(key), false) => Naming::ByKey(key),
            (None, true) => Naming::Minted,
            // Without a name of its own a task could not be asked for again.
            (None, false) if options.staged().is_some() => Naming::Minted,
            (None, false) => Naming::ByService,
        };
        let hosts = hosts.map(allowed).transpose()?;
        staging::check(&options, staged_by, limited_by, budget.is_some())?;
        let budget = match (budget, limited_by) {
            (Some(_), Some(first)) => {
                return Err(BuildError::Conflict {
                    first,
                    second: "budget",
                });
            }
            (Some(budget), None) => budget,
            (None, _) => Budget::new(match options.staged() {
                Some(_) => options.stage,
                None => options.limits,
            }),
        };
        let (now, today) = (clock::now(), wall.now());
        let newest = restored::newest(&restored, &options.instance)?;
        let tasks = match options.staged() {
            Some(settings) => restored::tasks(restored, now, today, settings.window, keep_expired)?,
            None => restored::none_staged(&restored)?,
        };
        let connection_options = ConnectionOptions::default()
            .channels(options.channels)
            .client(CONNECTOR, env!("CARGO_PKG_VERSION"));
        let connection = Connection::unary(endpoint, credentials, connection_options)?;

        let instance: Arc<str> = options.instance.as_str().into();
        let member = budget.join(format!("{CONNECTOR} {instance}"));
        let mut machine = Machine::new(options.machine(), newest);
        if let Some(size) = options.batch {
            machine = machine.batching(size, naming::minted());
        }
        if let Some(queue) = &queue {
            machine.expect_queue(clock::now(), queue);
        }
        let carried = options.carried();
        if limited_by.is_some() && options.limits.items > carried {
            event::more_than_carried(&instance, options.limits.items, carried);
        }
        let mut owed = None;
        if let Some(settings) = options.staged() {
            let kept = tasks.kept.len();
            let commit;
            (machine, commit) = machine.staging(now, today, settings, newest, tasks);
            member.charge(machine.held());
            owed = commit.map(|commit| (commit, Receipt::channel()));
            if kept > 0 {
                event::kept_before(&instance, kept);
            }
        }
        let shared = Arc::new(Shared::new(machine, member, instance, wall));
        let owed = owed.map(|(commit, (resolver, receipt))| {
            shared.lock().receipts.commits.insert(commit, resolver);
            receipt
        });
        let driver = Driver::new(
            Arc::clone(&shared),
            connection,
            handler,
            options.attempt_deadline,
        );
        let preparation = Preparation {
            encode,
            resolve,
            naming,
            hosts,
            largest: options.largest_task,
        };
        Ok((
            CloudTasksSink::new(preparation, shared, owed),
            SinkDriver::new(Box::pin(driver.into_future())),
        ))
    }
}

fn allowed(hosts: Vec<String>) -> Result<AllowedHosts, BuildError> {
    let allowed = AllowedHosts::parse(hosts).map_err(|host| BuildError::Host { host })?;
    if allowed.is_empty() {
        return Err(BuildError::Range {
            setting: "allow_hosts",
            value: "empty".to_owned(),
            range: "a list of at least one host, or left out",
        });
    }
    Ok(allowed)
}

impl<R> fmt::Debug for SinkBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkBuilder")
            .field("endpoint", &self.endpoint)
            .field("credentials", &self.credentials)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
