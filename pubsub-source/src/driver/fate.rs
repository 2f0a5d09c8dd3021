//! What ends one split of a source ends all of them.

use std::sync::Arc;

use connector_core::Cause;
use tokio::sync::watch;

use super::now;
use crate::shared::Shared;

/// What the splits of one source share: whether one of them has died, and of what.
#[derive(Debug, Clone)]
pub(crate) struct Fate(Arc<watch::Sender<Option<Cause>>>);

impl Fate {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// One of them died. The first cause counts.
    pub(super) fn tell(&self, cause: &Cause) {
        self.0.send_if_modified(|told| {
            let first = told.is_none();
            if first {
                *told = Some(cause.clone());
            }
            first
        });
    }

    /// Waits until one of them dies.
    pub(super) async fn fallen(&self) -> Cause {
        let mut told = self.0.subscribe();
        loop {
            if let Some(cause) = told.borrow_and_update().clone() {
                return cause;
            }
            // The sender lives as long as `self`.
            if told.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Tells everybody when the driver is gone, however that comes about.
pub(super) struct Farewell {
    pub(super) shared: Arc<Shared>,
    pub(super) fate: Fate,
    pub(super) cause: Cause,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        if let Some(fallen) = self.shared.end(now(), self.cause.clone()) {
            self.fate.tell(&fallen);
        }
    }
}
