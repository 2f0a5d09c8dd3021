//! What is asked of every peer: the flags, which are those of `throughput`, and the rhythm of
//! acknowledgements.

mod cuts;
mod flags;

pub use cuts::{Cuts, number};
pub use flags::{Create, Mode, Publish, Receive};
pub use measure::{Failure, Meter, Usage, now};

use clap::Parser;
use std::process::ExitCode;

/// How many ids an acknowledgement carries, as the service admits.
pub const ACK_IDS: usize = 1000;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    mode: Mode,
}

/// Runs what the command line asks for.
pub fn run<F>(contend: impl FnOnce(Mode) -> F) -> ExitCode
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let mode = Arguments::parse().mode;
    let threads = mode.flags().threads;
    match measure::on_threads(threads, contend(mode)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
