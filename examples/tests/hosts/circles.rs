//! What goes round without end takes no time at all here, and no time-out ends it.

use std::sync::{Mutex, PoisonError};

use tokio::{sync::Notify, time::Instant};

/// Calls at one instant of virtual time. A run has fewer than thirty messages, and the busiest
/// instants of honest runs see some hundred calls.
const MOST: u32 = 10_000;

/// Counts the calls that arrive while no time passes.
#[derive(Debug)]
pub(crate) struct Circles {
    at: Mutex<(Instant, u32)>,
    noticed: Notify,
}

impl Circles {
    pub(crate) fn begin(now: Instant) -> Self {
        Self {
            at: Mutex::new((now, 0)),
            noticed: Notify::new(),
        }
    }

    pub(crate) fn note_call(&self) {
        let now = Instant::now();
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        if at.0 != now {
            *at = (now, 0);
        }
        at.1 += 1;
        if at.1 > MOST {
            // The run itself ends: a panic here would be one of the servers.
            self.noticed.notify_one();
        }
    }

    /// Resolves when calls go round in circles.
    pub(crate) async fn noticed(&self) {
        self.noticed.notified().await;
    }
}
