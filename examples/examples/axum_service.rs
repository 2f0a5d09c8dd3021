//! A web service whose handlers share one sink; see `examples::axum_service`.

use std::process::ExitCode;

use clap::Parser;
use examples::axum_service::{Options, run};

fn main() -> ExitCode {
    let options = Options::parse();
    examples::program::main(run(&options))
}
