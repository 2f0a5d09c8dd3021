//! What must hold of the workspace as a whole: who depends on whom, how its crates are packaged, and
//! that its documents say what the code says.
#![expect(
    clippy::unwrap_used,
    reason = "what cannot be read fails the test, in its readers as in itself"
)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax of Rust has dozens of cases, and each reader looks for one or two"
)]

mod defaults;
mod dependencies;
mod errors;
mod events;
mod figures;
mod methods;
mod migration;
mod options;
mod packages;
mod source;
mod table;
