//! What bytes from outside must not break: targets for a fuzzer, and for tests over its corpus.

mod names;
mod published;
mod pull;
pub(crate) mod pulled;
#[cfg(test)]
mod tests;

pub use names::{endpoint, resource_names};
pub use published::published_ids;
pub use pull::pull_responses;
pub use pulled::pulled_response;
