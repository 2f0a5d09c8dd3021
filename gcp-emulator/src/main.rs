//! Runs the embedded servers for any client in any language.
//!
//! ```text
//! cargo run -p gcp-emulator -- --listen 127.0.0.1:8085
//! export PUBSUB_EMULATOR_HOST=127.0.0.1:8085
//! ```

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
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8085")]
    listen: SocketAddr,

    /// A task queue that exists from the start: projects/P/locations/L/queues/Q. May be repeated.
    #[arg(long)]
    queue: Vec<String>,

    /// Serves Pub/Sub only.
    #[arg(long)]
    no_cloud_tasks: bool,

    /// Refuses calls without the routing header, as the services do.
    #[arg(long)]
    require_routing_header: bool,

    /// The length of ack ids in characters.
    #[arg(long, default_value_t = 176)]
    ack_id_length: usize,
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
            tracing::error!(%error, "the server did not start");
            eprintln!("gcp-emulator: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> io::Result<()> {
    // Signals are caught before the address is told: whoever reads it may send one at once.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut builder = Emulator::builder()
        .cloud_tasks(!arguments.no_cloud_tasks)
        .require_routing_header(arguments.require_routing_header)
        .ack_id_length(arguments.ack_id_length)
        .request_history(ENTRIES)
        .history(History::new(ENTRIES, BYTES));
    for queue in arguments.queue {
        builder = builder.queue(queue);
    }
    let emulator = builder.listen(arguments.listen).await?;
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
