//! A topic per record; see `examples::fan_out`.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::program::main(examples::fan_out::run())
}
