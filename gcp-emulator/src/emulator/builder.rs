//! Settings of the servers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::TcpListener;
use tokio::runtime::Handle;

use crate::clock::Clock;
use crate::connection::{Connections, Transport};
use crate::emulator::Emulator;
use crate::emulator::listener::{Gate, Listening};
use crate::fault::{FaultPlan, Faults};
use crate::hub::{Hub, Options};
use crate::pubsub::state::{History, LateAcks, OnStreamClose, Settings};

/// Settings of [`Emulator`].
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct EmulatorBuilder {
    faults: FaultPlan,
    pubsub: Settings,
    options: Options,
    transport: Transport,
    wall: Option<SystemTime>,
    queues: Vec<String>,
}

impl EmulatorBuilder {
    /// The rules in force from the start. Default: none.
    pub fn faults(mut self, plan: FaultPlan) -> Self {
        self.faults = plan;
        self
    }

    /// The length of ack ids in characters, 40 to 4,096. Default 176, as long as real ones were in
    /// November 2026; they exceeded 210 in August.
    pub fn ack_id_length(mut self, characters: usize) -> Self {
        self.pubsub.ack_id_length = characters;
        self
    }

    /// What an acknowledgement does that comes after the lease's end, on a subscription without
    /// exactly-once delivery. Default [`LateAcks::UntilRedelivered`].
    pub fn late_acks(mut self, rule: LateAcks) -> Self {
        self.pubsub.late_acks = rule;
        self
    }

    /// What happens to the outstanding messages of a pull stream that ends. Default
    /// [`OnStreamClose::WaitForDeadline`].
    pub fn on_stream_close(mut self, rule: OnStreamClose) -> Self {
        self.pubsub.on_stream_close = rule;
        self
    }

    /// The most messages one response carries. Default 1,000.
    pub fn response_messages(mut self, messages: usize) -> Self {
        self.pubsub.response_messages = messages;
        self
    }

    /// The encoded bytes above which no further message joins a response; one message is always
    /// carried. Default 10,000,000.
    pub fn response_bytes(mut self, bytes: usize) -> Self {
        self.pubsub.response_bytes = bytes;
        self
    }

    /// Whether the pings of pull streams (empty requests, protocol version 1) are answered by an
    /// empty response. Default true, as the service does; Google's emulator never does.
    pub fn answer_pings(mut self, answer: bool) -> Self {
        self.pubsub.answer_pings = answer;
        self
    }

    /// Ends a pull stream with UNAVAILABLE when no request came on it for this long. Default never;
    /// reports of the service say 75 to 90 s.
    pub fn idle_stream_limit(mut self, limit: Duration) -> Self {
        self.pubsub.idle_stream_limit = Some(limit);
        self
    }

    /// Ends a pull stream with UNAVAILABLE when it is this old. Default never; the service does it
    /// after about 30 min.
    pub fn stream_lifetime(mut self, limit: Duration) -> Self {
        self.pubsub.stream_lifetime = Some(limit);
        self
    }

    /// How much is kept for assertions. Default [`History::default`].
    pub fn history(mut self, history: History) -> Self {
        self.pubsub.history = history;
        self
    }

    /// Whether a call without `x-goog-request-params`, or with wrong ones, is refused with
    /// INVALID_ARGUMENT. Default false.
    pub fn require_routing_header(mut self, require: bool) -> Self {
        self.options.require_routing_header = require;
        self
    }

    /// Whether Cloud Tasks is served on the same connections. Default true.
    pub fn cloud_tasks(mut self, serve: bool) -> Self {
        self.options.cloud_tasks = serve;
        self
    }

    /// A task queue that exists from the start, `projects/P/locations/L/queues/Q`.
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        self.queues.push(name.into());
        self
    }

    /// How long the name of a task that is over stays taken. Default one hour, the shorter of the
    /// figures Google publishes.
    pub fn task_names_kept(mut self, span: Duration) -> Self {
        self.options.task_names_kept = Some(span);
        self
    }

    /// How long after its call the operation of a `BatchCreateTasks` is done. Default zero: the call
    /// itself answers a finished one, as in every recording of the service. The tasks exist from the
    /// call on; what became of each is told when the operation is done.
    pub fn operations_take(mut self, span: Duration) -> Self {
        self.options.operations_take = span;
        self
    }

    /// How many requests are kept for assertions. Default 100,000.
    pub fn request_history(mut self, requests: usize) -> Self {
        self.options.request_history = requests;
        self
    }

    /// SETTINGS_MAX_CONCURRENT_STREAMS of every connection. Default: not sent, which is without
    /// limit; the services were seen to allow about 100.
    pub fn max_concurrent_streams(mut self, streams: u32) -> Self {
        self.transport.max_concurrent_streams = Some(streams);
        self
    }

    /// The window a client may fill per stream before its request is read, in bytes. Default 1 MiB.
    pub fn stream_window(mut self, bytes: u32) -> Self {
        self.transport.stream_window = bytes;
        self
    }

    /// The wall-clock time at the start, so that publish times are the same in every run. Default:
    /// the wall clock.
    pub fn wall_clock(mut self, start: SystemTime) -> Self {
        self.wall = Some(start);
        self
    }

    /// Starts the servers in memory: reachable through [`Emulator::dialer`] only.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime with its timer on; when a queue given by [`queue`](Self::queue) is
    /// refused, or [`ack_id_length`](Self::ack_id_length) lies outside its range.
    pub fn start(self) -> Emulator {
        self.assemble(Gate::in_memory(), None)
    }

    /// Starts the servers and listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// When the address can not be listened on.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn listen(self, address: SocketAddr) -> io::Result<Emulator> {
        let listener = TcpListener::bind(address).await?;
        let local = listener.local_addr()?;
        let (gate, listening) = Gate::over_tcp(listener, local);
        Ok(self.assemble(gate, Some((local, listening))))
    }

    fn assemble(self, gate: Gate, listening: Option<(SocketAddr, Listening)>) -> Emulator {
        assert!(
            (40..=4096).contains(&self.pubsub.ack_id_length),
            "ack_id_length {} lies outside 40..=4096",
            self.pubsub.ack_id_length
        );
        let runtime = Handle::current();
        let clock = Clock::start(self.wall);
        let hub = Arc::new(Hub::new(
            clock,
            self.pubsub,
            self.options,
            Faults::new(self.faults),
        ));
        for queue in &self.queues {
            let created = hub.with(|core, now| core.tasks.create_queue_named(now, queue));
            assert!(created.is_ok(), "queue {queue} was refused: {created:?}");
        }
        let connections = Arc::new(Connections::new(
            Arc::clone(&hub),
            self.transport,
            runtime.clone(),
        ));
        let mut tasks = vec![runtime.spawn(Arc::clone(&hub).keep_time()).abort_handle()];
        let mut local_addr = None;
        if let Some((local, listening)) = listening {
            local_addr = Some(local);
            let accepting = listening.run(Arc::clone(&connections));
            tasks.push(runtime.spawn(accepting).abort_handle());
        }
        Emulator {
            hub,
            connections,
            gate,
            local_addr,
            tasks,
        }
    }
}
