//! An outside service that takes numbers.

use std::sync::{Arc, Mutex};

use connector_core::conformance::Hold;

#[derive(Debug, Clone, Default)]
pub(crate) struct PushService(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    taken: Vec<u64>,
    hold: Hold,
    broken: bool,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    Taken,
    Waits,
    Refused,
}

impl PushService {
    pub(crate) fn push(&self, number: u64) -> Pushed {
        let mut inner = self.0.lock().unwrap();
        if inner.broken {
            return Pushed::Refused;
        }
        let waits = match inner.hold {
            Hold::Nothing => false,
            Hold::Odd => number % 2 == 1,
            Hold::Everything => true,
        };
        if waits {
            return Pushed::Waits;
        }
        inner.taken.push(number);
        Pushed::Taken
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.0.lock().unwrap().broken
    }

    pub(crate) fn taken(&self) -> Vec<u64> {
        self.0.lock().unwrap().taken.clone()
    }

    pub(crate) fn hold(&self, hold: Hold) {
        self.0.lock().unwrap().hold = hold;
    }

    pub(crate) fn set_broken(&self, broken: bool) {
        self.0.lock().unwrap().broken = broken;
    }
}
