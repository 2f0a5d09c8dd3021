//! A place for a pull stream, and what is known about the stream in it.

use std::time::{Duration, Instant};

use crate::machine::effect::StreamId;

#[derive(Debug)]
pub(super) struct Live {
    pub(super) stream: StreamId,
    pub(super) told: u64,
    pub(super) told_bytes: u64,
    pub(super) opened: bool,
    pub(super) delivered: bool,
    pub(super) lease: Duration,
    pub(super) lease_before: Duration,
    pub(super) lease_changed: Option<Instant>,
    pub(super) next_ping: Instant,
    /// The last response, or the moment from which on silence counts.
    pub(super) heard: Instant,
    pub(super) pinged: bool,
    /// Taken for dead; its end is not told yet.
    pub(super) given_up: bool,
}

#[derive(Debug)]
pub(super) enum Slot {
    /// Opens when this time has come.
    Waiting(Instant),
    Live(Live),
    /// Closed since then, because what it delivered was not read; opens as soon as reading goes on.
    Unread(Instant),
}

#[derive(Debug)]
pub(super) struct Retiring {
    pub(super) stream: StreamId,
    pub(super) told: u64,
    pub(super) told_bytes: u64,
    pub(super) lease: Duration,
    pub(super) drop_at: Instant,
}

impl Live {
    /// The stream once it is half-closed.
    pub(super) fn retiring(&self, drop_at: Instant) -> Retiring {
        Retiring {
            stream: self.stream,
            told: self.told,
            told_bytes: self.told_bytes,
            lease: self.lease.min(self.lease_before),
            drop_at,
        }
    }
}
