//! The sink against the `cloud-tasks-emulator` crate, whose answers its authors hold to recordings
//! of the real service: over a real socket, with real dispatch to an HTTP server.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    reason = "a test that cannot go on fails, spawns its servers, and names the variant it means"
)]

mod creating;
mod dispatching;
mod ending;
mod exchange;
mod many;
mod overrides;
mod servers;
mod targets;
mod tokens;
