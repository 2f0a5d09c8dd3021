//! Each order becomes one task; see `examples::tasks_once`.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::program::main(examples::tasks_once::run())
}
