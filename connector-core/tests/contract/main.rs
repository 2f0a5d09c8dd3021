//! The checkpoint contract, end to end: the conformance suite on reference connectors, the suite
//! itself on broken ones, and the host's loop.

#![expect(clippy::unwrap_used, reason = "a fake that fails fails its test")]

mod barriers;
mod broken;
mod conformance;
mod finish;
mod host_loop;
mod reference;
