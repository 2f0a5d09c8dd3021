//! Measures the connectors through their public interface, against a server made for load.
//!
//! ```text
//! cargo run --release -p benches --bin throughput -- receive --secs 10
//! cargo run --release -p benches --bin throughput -- publish --payload-bytes 1024 --batch 1000
//! cargo run --release -p benches --bin throughput -- create --batch 100
//! ```
//!
//! One line of JSON at the end. Ratios of runs on one machine are what to compare: see
//! `docs/performance.md`.

mod create;
mod drive;
mod flood;
mod latencies;
mod publish;
mod receive;
mod report;
mod usage;

use std::{io, process::ExitCode};

use clap::{Parser, Subcommand};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Throughput of the connectors, and what it costs.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Reads a subscription and takes checkpoints.
    Receive(receive::Receive),
    /// Publishes to topics.
    Publish(publish::Publish),
    /// Creates tasks.
    Create(create::Create),
    /// The server that the other modes start for themselves.
    #[command(hide = true)]
    Flood(flood::FloodServer),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .init();
    let done = match Arguments::parse().mode {
        Mode::Receive(receive) => on_threads(receive.common.threads, receive.run()),
        Mode::Publish(publish) => on_threads(publish.common.threads, publish.run()),
        Mode::Create(create) => on_threads(create.common.threads, create.run()),
        Mode::Flood(server) => on_threads(1, server.run()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("throughput: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs on a current-thread runtime, or on a multi-thread runtime of `threads` workers.
fn on_threads(
    threads: usize,
    run: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let mut builder = if threads == 1 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(threads);
        builder
    };
    builder.enable_all().build()?.block_on(run)
}
