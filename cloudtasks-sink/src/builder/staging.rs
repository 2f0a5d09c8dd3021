//! The settings of sinks that stage.

use std::time::{Duration, SystemTime};

use connector_core::{Limits, WallClock};

use super::SinkBuilder;
use crate::delivery::Delivery;
use crate::error::BuildError;
use crate::options::Options;

impl<R> SinkBuilder<R> {
    /// Says when tasks are created. Default: [`Delivery::Flush`], as records come in.
    ///
    /// [`Delivery::Staged`] creates them when their checkpoint is committed, once each. They are
    /// named at random then, or by [`task_id`](Self::task_id). Excludes [`limits`](Self::limits),
    /// [`in_flight`](Self::in_flight) and [`budget`](Self::budget): what may be staged is bounded by
    /// [`stage`](Self::stage).
    pub const fn delivery(mut self, delivery: Delivery) -> Self {
        self.options.delivery = delivery;
        self
    }

    /// Bounds what is staged, or committed and without a verdict. Default: 20,000 tasks and 256 MiB
    /// of encoded requests, which is a minute of what one channel creates.
    ///
    /// At half of it the sink asks for a checkpoint; a full stage takes no records and every
    /// snapshot. The state holds as much, and so does memory. Only for [`Delivery::Staged`].
    pub const fn stage(mut self, limits: Limits) -> Self {
        self.options.stage = limits;
        self.staged_by = Some("stage");
        self
    }

    /// What is taken off `name_retention`: a task is sent until its seal plus the retention less
    /// this. Default, and least: 10 min, for a call's own deadline, clocks that differ by a minute,
    /// and calls that the service sees long after their client gave up. Only for
    /// [`Delivery::Staged`].
    pub const fn retention_margin(mut self, margin: Duration) -> Self {
        self.options.retention_margin = margin;
        self.staged_by = Some("retention_margin");
        self
    }

    /// Bounds the committed tasks that are kept aside for an operator. Default: 10,000 tasks and
    /// 64 MiB. One more ends the sink, with nothing lost. Only for [`Delivery::Staged`].
    pub const fn quarantine(mut self, limits: Limits) -> Self {
        self.options.quarantine = limits;
        self.staged_by = Some("quarantine");
        self
    }

    /// Goes on although the restored state names tasks that are past their recovery deadline: they
    /// are kept aside, for [`expired`](crate::CloudTasksSink::expired) to list and
    /// [`resolve`](crate::CloudTasksSink::resolve) to decide about. Default: `build` refuses such a state
    /// with their number. Only for [`Delivery::Staged`].
    pub const fn keep_expired(mut self) -> Self {
        self.keep_expired = true;
        self.staged_by = Some("keep_expired");
        self
    }

    /// Says where the time of day comes from. Default: the system's clock. For tests that let days
    /// pass in virtual time.
    pub fn wall_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.wall = WallClock::new(clock);
        self
    }
}

/// Refuses a setting that is for the other delivery.
pub(super) fn check(
    options: &Options,
    staged_by: Option<&'static str>,
    limited_by: Option<&'static str>,
    has_budget: bool,
) -> Result<(), BuildError> {
    let (first, second) = match (options.staged(), staged_by, limited_by) {
        (None, Some(setting), _) => (setting, "Delivery::Flush"),
        (Some(_), _, Some(setting)) => (setting, "Delivery::Staged"),
        (Some(_), _, None) if has_budget => ("budget", "Delivery::Staged"),
        (None, None, _) | (Some(_), _, None) => return Ok(()),
    };
    Err(BuildError::Conflict { first, second })
}
