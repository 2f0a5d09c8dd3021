//! The sink against the `cloud-tasks-emulator` crate, whose answers its authors hold to recordings
//! of the real service: over a real socket, with real dispatch to an HTTP server.
//!
//! What the service answers is asked of that server and of ours, one task at a time and in batches.
//! On ours alone, in `tests/emulated` and the tests of `gcp-emulator`: names that are free again
//! when their window is over, operations that are not done when their call is answered, a client
//! that waits for more than 30 s, failures before and after the effect. App Engine targets are held
//! to golden bytes, since no emulator dispatches them.
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
