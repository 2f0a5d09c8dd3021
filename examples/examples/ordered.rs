//! Order per key, from the subscription to the topic; see `examples::ordered`.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::program::main(examples::ordered::run())
}
