//! Every message of a subscription goes to another topic; see `examples::copy`.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::program::main(examples::copy::run())
}
