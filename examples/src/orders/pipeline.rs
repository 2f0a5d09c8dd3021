//! The pipeline: reads orders, publishes them to their region, creates the partners' tasks.
//!
//! Runs in a process of its own, so that it can be killed at any moment without taking along the
//! servers and whoever counts.

mod connectors;
mod error;
mod host;
mod saved;
mod spec;

pub(crate) use error::PipelineError;
pub(crate) use spec::PipelineSpec;

use std::io::{self, Write};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::error::chain;
use super::instructions::Instructions;

/// The last line a pipeline process writes, unless it dies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "pipeline")]
pub(crate) enum Farewell {
    /// The last checkpoint was taken, and the connectors are closed.
    Ended,
    /// The chain of errors, in one line.
    Failed { error: String },
}

/// The role of a pipeline's process.
pub(crate) async fn serve() -> ExitCode {
    let farewell = match work().await {
        Ok(()) => Farewell::Ended,
        Err(error) => Farewell::Failed {
            error: chain(&error),
        },
    };
    let told = serde_json::to_string(&farewell)
        .map_err(io::Error::from)
        .and_then(|line| writeln!(io::stdout(), "{line}"));
    // A parent that is gone cannot be told anything; the exit code is for whoever else looks.
    match (farewell, told) {
        (Farewell::Ended, Ok(())) => ExitCode::SUCCESS,
        (Farewell::Failed { .. }, _) | (Farewell::Ended, Err(_)) => ExitCode::FAILURE,
    }
}

async fn work() -> Result<(), PipelineError> {
    let (spec, told_to_end) = Instructions::<PipelineSpec>::read()
        .map_err(PipelineError::Instructions)?
        .split();
    host::run(spec, told_to_end.wait()).await
}
