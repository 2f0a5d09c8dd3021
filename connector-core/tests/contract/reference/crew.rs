//! The drivers of a world's living connectors, moved on whenever the suite waits.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, Weak},
    task::{Context, Poll, Waker},
};

/// Something with a driver: `drive` is one turn of it.
pub(crate) trait Drive: Send {
    fn drive(&mut self);
}

/// Rounds of poll-and-drive before a wait counts as endless. Every reference connector settles
/// within two turns of its driver.
const ROUNDS: usize = 12;

#[derive(Default)]
pub(crate) struct Crew(Vec<Weak<Mutex<dyn Drive>>>);

impl Crew {
    pub(crate) fn join<D: Drive + 'static>(&mut self, driver: &Arc<Mutex<D>>) {
        let driver: Weak<Mutex<D>> = Arc::downgrade(driver);
        self.0.push(driver);
    }

    pub(crate) fn drive(&mut self) {
        self.0.retain(|driver| {
            let Some(driver) = driver.upgrade() else {
                return false;
            };
            driver.lock().unwrap().drive();
            true
        });
    }

    pub(crate) fn let_time_pass(&mut self) {
        for _ in 0..ROUNDS {
            self.drive();
        }
    }

    pub(crate) fn bounded<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        for _ in 0..ROUNDS {
            if let Poll::Ready(output) = future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                return Some(output);
            }
            self.drive();
        }
        None
    }
}
