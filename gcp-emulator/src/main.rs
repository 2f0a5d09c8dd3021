//! Runs the embedded servers for any client in any language.
//!
//! ```text
//! cargo run -p gcp-emulator -- --listen 127.0.0.1:8085 \
//!     --topic projects/demo/topics/orders \
//!     --subscription projects/demo/subscriptions/orders=projects/demo/topics/orders
//! export PUBSUB_EMULATOR_HOST=127.0.0.1:8085
//! ```
//!
//! With `--flood` it is the server made for load instead, `gcp_emulator::flood`.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use gcp_emulator::Emulator;
use gcp_emulator::flood::{self, Flood, FloodCounts};
use gcp_emulator::pubsub::state::History;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Entries kept per list for assertions: nobody asks a stand-alone server, so few are enough.
const ENTRIES: usize = 1000;

/// Bytes of published messages kept per topic beyond the subscriptions' own backlogs.
const BYTES: usize = 1 << 20;

/// Pub/Sub and Cloud Tasks servers for tests: everything in memory, nothing dispatched.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Where to listen, as ADDRESS:PORT like 127.0.0.1:8085 or [::1]:8085; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8085", value_parser = listen)]
    listen: SocketAddr,

    /// A topic that exists from the start: projects/P/topics/T. May be repeated.
    #[arg(long)]
    topic: Vec<String>,

    /// A subscription that exists from the start, and its topic, which has to be given too:
    /// projects/P/subscriptions/S=projects/P/topics/T. May be repeated.
    #[arg(long, value_name = "SUBSCRIPTION=TOPIC", value_parser = subscription)]
    subscription: Vec<(String, String)>,

    /// A task queue that exists from the start: projects/P/locations/L/queues/Q. May be repeated.
    #[arg(long)]
    queue: Vec<String>,

    /// Serves Pub/Sub only.
    #[arg(long)]
    no_cloud_tasks: bool,

    /// Refuses calls without the routing header, as the services do.
    #[arg(long)]
    require_routing_header: bool,

    /// The length of ack ids in characters, from 40 to 4096.
    #[arg(long, default_value_t = 176, value_parser = clap::value_parser!(u16).range(40..=4096))]
    ack_id_length: u16,

    /// Serves load instead: as fast as it can, with no topics, leases or redelivery, on one thread.
    #[arg(long, conflicts_with_all = [
        "topic", "subscription", "queue", "no_cloud_tasks", "require_routing_header",
    ])]
    flood: bool,

    /// With --flood: bytes of a pulled message's payload.
    #[arg(long, requires = "flood", default_value_t = 16)]
    payload_bytes: usize,

    /// With --flood: messages per pull response.
    #[arg(long, requires = "flood", default_value_t = 100)]
    per_response: usize,

    /// With --flood: messages per second over all pull streams; as many as are asked for without.
    #[arg(long, requires = "flood")]
    rate: Option<NonZeroU32>,

    /// With --flood: milliseconds that publishes and task creations take.
    #[arg(long, requires = "flood", default_value_t = 0)]
    delay_ms: u64,

    /// With --flood: streams a connection may have at once; as many as are opened without.
    #[arg(long, requires = "flood")]
    streams_per_connection: Option<u32>,
}

impl Arguments {
    fn load(&self) -> Flood {
        let mut load = Flood::default();
        load.payload_bytes = self.payload_bytes;
        load.per_response = self.per_response;
        load.ack_id_length = usize::from(self.ack_id_length);
        load.rate = self.rate;
        load.delay = Duration::from_millis(self.delay_ms);
        load.streams_per_connection = self.streams_per_connection;
        load
    }
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "write an address and a port, like 127.0.0.1:8085".to_owned())
}

fn subscription(text: &str) -> Result<(String, String), String> {
    // No name has an equals sign.
    let (subscription, topic) = text.split_once('=').ok_or_else(|| {
        "write a subscription and its topic, like \
         projects/demo/subscriptions/orders=projects/demo/topics/orders"
            .to_owned()
    })?;
    Ok((subscription.to_owned(), topic.to_owned()))
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .init();
    let arguments = Arguments::parse();
    // What load costs the server is to be seen as the time of one core.
    let mut runtime = if arguments.flood {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    let runtime = runtime.enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(run(arguments))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gcp-emulator: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> io::Result<()> {
    // Signals are caught before the address is told: whoever reads it may send one at once.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let ended = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    if arguments.flood {
        return tokio::select! {
            served = serve_load(&arguments) => served,
            () = ended => Ok(()),
        };
    }
    let emulator = started(arguments).await?;
    if let Some(address) = emulator.local_addr() {
        announce(address)?;
    }
    ended.await;
    emulator.stop();
    Ok(())
}

async fn serve_load(arguments: &Arguments) -> io::Result<()> {
    let listener = TcpListener::bind(arguments.listen).await;
    let listener = listener.map_err(|error| not_listening(arguments.listen, &error))?;
    announce(listener.local_addr()?)?;
    let mut last = FloodCounts::default();
    let watch = |counts| {
        if counts != last {
            tracing::info!(?counts, "served so far");
            last = counts;
        }
    };
    flood::serve(listener, arguments.load(), watch).await
}

async fn started(arguments: Arguments) -> io::Result<Emulator> {
    let builder = Emulator::builder()
        .cloud_tasks(!arguments.no_cloud_tasks)
        .require_routing_header(arguments.require_routing_header)
        .ack_id_length(usize::from(arguments.ack_id_length))
        .request_history(ENTRIES)
        .history(History::new(ENTRIES, BYTES));
    let address = arguments.listen;
    let listening = builder.listen(address).await;
    let emulator = listening.map_err(|error| not_listening(address, &error))?;
    for topic in arguments.topic {
        let created = emulator.create_topic(&topic);
        created.map_err(|refusal| refused("topic", &topic, &refusal))?;
    }
    for (subscription, topic) in arguments.subscription {
        let created = emulator.create_subscription(&subscription, &topic, |_| {});
        created.map_err(|refusal| refused("subscription", &subscription, &refusal))?;
    }
    for queue in arguments.queue {
        let created = emulator.create_queue(&queue);
        created.map_err(|refusal| refused("queue", &queue, &refusal))?;
    }
    Ok(emulator)
}

fn announce(address: SocketAddr) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "listening on {address}")?;
    stdout.flush()
}

fn not_listening(address: SocketAddr, error: &io::Error) -> io::Error {
    let what = format!("cannot listen on {address}, nothing is served: {error}");
    io::Error::new(error.kind(), what)
}

fn refused(kind: &str, name: &str, refusal: &dyn Display) -> io::Error {
    let what = format!("{kind} {name:?} was refused, nothing is served: {refusal}");
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_of_the_load_reaches_the_server() {
        let arguments = Arguments::try_parse_from([
            "gcp-emulator",
            "--flood",
            "--payload-bytes=1024",
            "--per-response=7",
            "--ack-id-length=40",
            "--rate=1500",
            "--delay-ms=20",
            "--streams-per-connection=100",
        ]);
        let load = arguments.unwrap().load();
        assert_eq!((load.payload_bytes, load.per_response), (1024, 7));
        assert_eq!(load.ack_id_length, 40);
        assert_eq!(load.rate, NonZeroU32::new(1500));
        assert_eq!(load.delay, Duration::from_millis(20));
        assert_eq!(load.streams_per_connection, Some(100));
    }

    #[test]
    fn without_flags_the_load_has_the_defaults_of_the_library() {
        let arguments = Arguments::try_parse_from(["gcp-emulator", "--flood"]);
        let load = arguments.unwrap().load();
        assert_eq!(format!("{load:?}"), format!("{:?}", Flood::default()));
    }

    #[test]
    fn flags_of_one_server_are_refused_by_the_other() {
        for flags in [
            ["--payload-bytes", "7"],
            ["--rate", "7"],
            ["--flood", "--topic=projects/demo/topics/orders"],
            ["--flood", "--no-cloud-tasks"],
        ] {
            let arguments = ["gcp-emulator"].into_iter().chain(flags);
            assert!(Arguments::try_parse_from(arguments).is_err(), "{flags:?}");
        }
    }
}
