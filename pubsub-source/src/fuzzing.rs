//! What bytes from outside must not break: targets for a fuzzer, and for tests over its corpus.

mod host;
mod operation;
mod responses;
mod state;
#[cfg(test)]
mod tests;

pub use host::source_machine;
pub use responses::source_responses;
pub use state::source_state;

use gcp_wire::SubscriptionName;

/// The subscription of every target: that of the saved states in the corpus.
fn subscription() -> SubscriptionName {
    let name = "projects/demo-project/subscriptions/s11";
    name.parse().expect("it is a subscription's name")
}
