//! The project's main job: orders in, region topics and partner calls out, nothing lost.
//!
//! Order events arrive on a Pub/Sub subscription. Each is parsed, enriched with the partner's
//! endpoint and tenant for its customer, published again to the topic of its region, and becomes a
//! Cloud Task that calls the partner. A checkpoint every two seconds covers all three; messages are
//! acknowledged only once the checkpoint that covers them is durable.
//!
//! The pipeline (its loop is in `pipeline/host.rs`) runs in a child process that may be killed at any
//! moment. The parent process, [`run`], owns the servers, publishes the orders, and counts what
//! arrived from what the servers and the partner saw.

mod clock;
mod error;
mod instructions;
mod memory;
mod names;
mod options;
mod order;
mod partner;
mod pipeline;
mod process;
mod progress;
mod publisher;
mod region_counter;
mod report;
mod resources;
mod routes;
mod run;
mod server;
mod servers;
mod state_dir;
mod supervisor;
mod tasks_server;
mod workload;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

pub(crate) use error::chain;
pub use error::{OrdersError, PipelineText};
pub use options::Options;
pub use process::Program;
pub use report::Report;

use options::Role;
use run::Run;

/// Runs the job once and returns what was counted.
///
/// `program` is what child processes run.
///
/// # Errors
///
/// An [`OrdersError`] when there is nothing to count: a server cannot be reached, the pipeline ended
/// with an error. Lost orders are no error but a figure.
///
/// # Cancel safety
///
/// Dropping the future kills the child processes; what was created on a running server stays there.
pub async fn run(options: &Options, program: &Program) -> Result<Report, OrdersError> {
    Run::start(options, program).await?.finish().await
}

/// The whole program: reads the command line, does what it says, and prints the figures.
///
/// Exit code 1 when orders were lost, 2 when the run ended with an error.
#[must_use]
pub fn main() -> ExitCode {
    let options = Options::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_unset| EnvFilter::new("error")),
        )
        .with_writer(io::stderr)
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    match options.role {
        None => runtime.block_on(parent(&options)),
        Some(Role::Pipeline) => runtime.block_on(pipeline::serve()),
        Some(Role::TasksServer) => match runtime.block_on(tasks_server::serve()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        },
    }
}

async fn parent(options: &Options) -> ExitCode {
    let program = match Program::current() {
        Ok(program) => program,
        Err(error) => return failed(&error),
    };
    match run(options, &program).await {
        Ok(report) => match print(&report, options.json) {
            // A reader that has seen enough, such as `head`, changes nothing about the run.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                failed(&OrdersError::Print(error))
            }
            Ok(()) | Err(_) => ExitCode::from(report.exit_status()),
        },
        Err(error) => failed(&error),
    }
}

fn print(report: &Report, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", report.table())?;
    if json {
        writeln!(out, "{}", report.json())?;
    }
    out.flush()
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    progress::tell(&format!("orders: {}", chain(error)));
    ExitCode::from(2)
}
