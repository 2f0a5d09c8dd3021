//! The sink against the embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod checkpoints;
mod compression;
mod conformance;
mod dead_letters;
mod destinations;
mod documents;
mod faults;
mod layers;
mod limits;
#[path = "../../../pubsub-source/tests/wire/listening.rs"]
mod listening;
mod log;
mod order;
mod outages;
mod quarantine;
mod rejections;
mod sockets;
mod spans;
mod staged;
mod staged_restores;
mod stopping;
mod submitting;
mod traces;
mod world;
