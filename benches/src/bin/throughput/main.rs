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
mod publish;
mod receive;

use std::{io, process::ExitCode};

use clap::{Parser, Subcommand};
use measure::on_threads;

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
    /// The server that the other modes start for themselves; it ends with its standard input.
    Flood(flood::FloodServer),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .init();
    let done = match Arguments::parse().mode {
        Mode::Receive(receive) => on_threads(receive.flags.threads, receive.run()),
        Mode::Publish(publish) => on_threads(publish.flags.threads, publish.run()),
        Mode::Create(create) => on_threads(create.flags.threads, create.run()),
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
