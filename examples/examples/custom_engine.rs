//! A toy stream engine that takes any connector; see `examples::custom_engine`.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::program::main(examples::custom_engine::run())
}
