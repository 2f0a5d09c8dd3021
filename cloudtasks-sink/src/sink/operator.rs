//! What an operator sees and decides of tasks that are kept aside.

use std::time::SystemTime;

use super::CloudTasksSink;
use crate::driver::clock;
use crate::event;
use crate::resolution::{Resolution, ResolveError};
use crate::state::{KeptReason, KeptTask};

impl<R> CloudTasksSink<R> {
    /// The committed tasks that are past their recovery deadline, to be looked at or exported.
    ///
    /// They were not created in time and are not created now, since the service may have forgotten
    /// that they were. They stay in every state until [`resolve`](Self::resolve) says what becomes
    /// of each.
    #[must_use]
    pub fn expired(&self) -> Vec<KeptTask> {
        self.kept(KeptReason::Expired)
    }

    /// Until when the oldest committed task without a verdict may be created, if there is one: what
    /// is not created by then is kept aside as [`expired`](Self::expired).
    /// [`Stats::window_used_percent`](crate::Stats) tells how near that is.
    #[must_use]
    pub fn next_deadline(&self) -> Option<SystemTime> {
        self.shared.lock().machine.next_deadline()
    }

    /// The committed tasks that the service refused and the failure handler did not take. They stay
    /// in every state until [`resolve`](Self::resolve) says what becomes of each.
    #[must_use]
    pub fn refused(&self) -> Vec<KeptTask> {
        self.kept(KeptReason::Refused)
    }

    fn kept(&self, why: KeptReason) -> Vec<KeptTask> {
        let mut kept = self.shared.lock().machine.kept();
        kept.retain(|task| task.why() == why);
        kept
    }

    /// Decides what becomes of a task that is kept aside, by its full name. Written to the log with
    /// the task's name.
    ///
    /// # Errors
    ///
    /// [`ResolveError::Unknown`] when no such task is kept aside, [`ResolveError::Closed`] when the
    /// sink has ended. Nothing changed then.
    pub fn resolve(&mut self, name: &str, resolution: Resolution) -> Result<(), ResolveError> {
        let mut inner = self.shared.lock();
        inner.machine.handle_time_of_day(self.shared.wall().now());
        let taken = inner.machine.resolve(clock::now(), name, resolution)?;
        // Under the same lock: the driver may give it back at any moment after.
        self.shared.member().charge(taken);
        drop(inner);
        event::resolved(self.shared.instance(), name, resolution);
        self.shared.wake_driver();
        Ok(())
    }
}
