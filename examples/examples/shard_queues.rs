//! Tasks spread over several queues; see `examples::shard_queues`.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::program::main(examples::shard_queues::run())
}
