//! Correct in-memory connectors, small enough to be read whole, built on the ledger as the real
//! ones are; and the same with one fault planted.

pub(crate) mod bug;
pub(crate) mod crew;
pub(crate) mod pull_service;
pub(crate) mod push_service;
pub(crate) mod sink;
pub(crate) mod sink_harness;
pub(crate) mod source;
pub(crate) mod source_harness;

pub(crate) use bug::Bug;
