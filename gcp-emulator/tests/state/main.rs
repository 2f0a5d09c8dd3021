//! The pure Pub/Sub machine in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "the functions tests share are tests too"
)]

mod dead_letters;
mod delivery_table;
mod exactly_once;
mod laws;
mod lifetimes;
mod ordered;
mod publishing;
mod seeking;
mod streams;
mod world;
