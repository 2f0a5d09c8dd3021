//! What bytes from outside must not break: targets for a fuzzer, and for tests over its corpus.

mod host;
mod operation;
mod state;
#[cfg(test)]
mod tests;

pub use host::sink_machine;
pub use state::sink_state;
