//! Until when committed tasks may be sent, the first of them at hand.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::super::staged::Release;

/// Recovery deadlines by the time of day, and how many tasks have each: those of one cut share one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Deadlines(BTreeMap<SystemTime, usize>);

impl Deadlines {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn add(&mut self, release: &Release) {
        *self.0.entry(release.deadline().wall()).or_default() += 1;
    }

    pub(super) fn remove(&mut self, release: &Release) {
        let deadline = release.deadline().wall();
        if let Some(count) = self.0.get_mut(&deadline) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&deadline);
            }
        }
    }

    pub(super) fn first(&self) -> Option<SystemTime> {
        self.0.keys().next().copied()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
