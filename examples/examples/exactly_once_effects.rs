//! Effects in a database, once each; see `examples::exactly_once_effects`.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::program::main(examples::exactly_once_effects::run())
}
