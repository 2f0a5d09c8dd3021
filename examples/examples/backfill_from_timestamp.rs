//! A job that begins at a moment of the past, once; see `examples::backfill_from_timestamp`.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::program::main(examples::backfill_from_timestamp::run())
}
