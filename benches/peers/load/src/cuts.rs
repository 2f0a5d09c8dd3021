//! When acknowledgements leave.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

use crate::ACK_IDS;

/// What was received and is not acknowledged yet, in full requests and a last one.
#[derive(Debug)]
pub struct Cuts<T> {
    full: Vec<Vec<T>>,
    last: Vec<T>,
    tick: Option<Interval>,
}

impl<T> Cuts<T> {
    /// Holds everything for `every`, or nothing beyond a full request.
    pub fn new(every: Option<Duration>) -> Self {
        let tick = every.map(|every| {
            let mut tick = tokio::time::interval(every);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            tick.reset();
            tick
        });
        Self {
            full: Vec::new(),
            last: Vec::with_capacity(ACK_IDS),
            tick,
        }
    }

    /// One more.
    pub fn hold(&mut self, received: T) {
        self.last.push(received);
        if self.last.len() == ACK_IDS {
            let full = std::mem::replace(&mut self.last, Vec::with_capacity(ACK_IDS));
            self.full.push(full);
        }
    }

    /// The full requests, where nothing is held for longer.
    pub fn at_once(&mut self) -> Vec<Vec<T>> {
        if self.timed() {
            Vec::new()
        } else {
            std::mem::take(&mut self.full)
        }
    }

    /// Whether they are held for a time.
    pub fn timed(&self) -> bool {
        self.tick.is_some()
    }

    /// All of them, when their time has come. Cancel safe.
    pub async fn due(&mut self) -> Vec<Vec<T>> {
        match &mut self.tick {
            Some(tick) => tick.tick().await,
            None => std::future::pending().await,
        };
        let mut all = std::mem::take(&mut self.full);
        all.push(std::mem::replace(
            &mut self.last,
            Vec::with_capacity(ACK_IDS),
        ));
        all
    }
}

/// How many there are in all.
pub fn number<T>(requests: &[Vec<T>]) -> u64 {
    requests.iter().map(|ids| ids.len() as u64).sum()
}
