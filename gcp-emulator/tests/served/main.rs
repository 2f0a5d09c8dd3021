//! The servers seen through real gRPC clients.

#![expect(
    clippy::unwrap_used,
    reason = "the functions tests share are tests too"
)]

mod admin;
mod client;
mod connections;
mod faults;
mod observing;
mod over_tcp;
mod pulling;
mod queues;
mod streams_under_faults;
mod tasks;
mod transport_faults;
