//! A job with several readers that starts once; see `examples::replicas`.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::replicas::main()
}
