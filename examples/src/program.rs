//! The frame of the small examples' programs: run, print the figures, name the error.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use connector_core::BoxError;
use tokio::runtime::{Builder, Runtime};

/// Runs an example on a runtime of its own and prints what it reports.
///
/// Exit code 2 when it ended with an error, which is told on standard error with its causes.
#[must_use]
pub fn main<R: Display>(example: impl Future<Output = Result<R, BoxError>>) -> ExitCode {
    match Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => main_on(&runtime, example),
        Err(error) => failed(&error),
    }
}

/// As [`main`], on a runtime that the program made.
#[must_use]
pub fn main_on<R: Display>(
    runtime: &Runtime,
    example: impl Future<Output = Result<R, BoxError>>,
) -> ExitCode {
    match runtime.block_on(example) {
        Ok(report) => {
            // A reader that has seen enough changes nothing about the run.
            writeln!(io::stdout(), "{report}").unwrap_or_default();
            ExitCode::SUCCESS
        }
        Err(error) => failed(error.as_ref()),
    }
}

/// Tells an error with its causes, in one line, and answers the exit code for it.
#[must_use]
pub fn failed(error: &dyn Error) -> ExitCode {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    writeln!(io::stderr(), "{text}").unwrap_or_default();
    ExitCode::from(2)
}
