//! Runs the embedded servers for any client in any language.
//!
//! ```text
//! cargo run -p gcp-emulator -- --listen 127.0.0.1:8085 \
//!     --topic projects/demo/topics/orders \
//!     --subscription projects/demo/subscriptions/orders=projects/demo/topics/orders
//! export PUBSUB_EMULATOR_HOST=127.0.0.1:8085
//! ```

use std::fmt::Display;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use gcp_emulator::Emulator;
use gcp_emulator::pubsub::state::History;
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

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .init();
    match run(Arguments::parse()).await {
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
    let builder = Emulator::builder()
        .cloud_tasks(!arguments.no_cloud_tasks)
        .require_routing_header(arguments.require_routing_header)
        .ack_id_length(usize::from(arguments.ack_id_length))
        .request_history(ENTRIES)
        .history(History::new(ENTRIES, BYTES));
    let address = arguments.listen;
    let emulator = builder.listen(address).await.map_err(|error| {
        let what = format!("cannot listen on {address}, nothing is served: {error}");
        io::Error::new(error.kind(), what)
    })?;
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
    if let Some(address) = emulator.local_addr() {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "listening on {address}")?;
        stdout.flush()?;
    }
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    emulator.stop();
    Ok(())
}

fn refused(kind: &str, name: &str, refusal: &dyn Display) -> io::Error {
    let what = format!("{kind} {name:?} was refused, nothing is served: {refusal}");
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
