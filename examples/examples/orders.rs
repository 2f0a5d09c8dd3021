//! The project's main job; see `examples::orders`.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::orders::main()
}
