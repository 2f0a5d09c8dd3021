//! Drives dead letters again to where they came from; see `examples::replay`.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::replay::main()
}
