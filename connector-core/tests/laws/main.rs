//! Laws of the pure parts, against naive models.

#![expect(
    clippy::unwrap_used,
    reason = "a model that cannot go on fails its test"
)]

mod backoff;
mod budget;
mod destination;
mod ledger;
mod ledger_counts;
mod ledger_model;
mod progress;
mod receipt;
mod saved;
mod shard;
mod trace;
