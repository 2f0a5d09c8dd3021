//! Totals per customer and hour; see `examples::hourly_totals`.

use std::process::ExitCode;

use tokio::runtime::Builder;

fn main() -> ExitCode {
    // Hours pass in a second: the clock moves on whenever nothing else does, and the embedded server's
    // with it.
    match Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
    {
        Ok(runtime) => examples::program::main_on(&runtime, examples::hourly_totals::run()),
        Err(error) => examples::program::failed(&error),
    }
}
