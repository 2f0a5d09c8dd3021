//! Until when a task may be sent.

use std::time::{Duration, Instant, SystemTime};

/// How far ahead of the clock a saved time may lie. One further ahead says that a clock was wrong,
/// then or now, so that nobody knows how old it is.
const SKEW: Duration = Duration::from_secs(60);

/// When a task was sealed, and until when it may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Release {
    /// No attempt was made before.
    pub(super) since: SystemTime,
    deadline: Deadline,
}

/// The last moment at which a task may be sent, by two clocks.
///
/// The time of day goes on while a machine sleeps, and may be set back; the other clock is never set
/// back, and may stop while a machine sleeps. A task is late by the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Deadline {
    wall: SystemTime,
    monotonic: Instant,
}

/// A saved time lies ahead of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooFarAhead;

impl Release {
    /// Sealed now. Where a clock cannot count as far as the deadline, nobody can tell what is late:
    /// then it is late at once. `build` refuses windows as long as that.
    pub(crate) fn at(now: Instant, wall: SystemTime, window: Duration) -> Self {
        Self {
            since: wall,
            deadline: Deadline {
                wall: wall.checked_add(window).unwrap_or(wall),
                monotonic: now.checked_add(window).unwrap_or(now),
            },
        }
    }

    /// Sealed at a time that a state tells. One that is over or cannot be judged is over.
    pub(crate) fn restored(
        since: SystemTime,
        now: Instant,
        wall: SystemTime,
        window: Duration,
    ) -> Self {
        let left = Self::left(since, wall, window);
        let left = left.unwrap_or_default().unwrap_or_default();
        Self {
            since,
            deadline: Deadline {
                wall: wall.checked_add(left).unwrap_or(wall),
                monotonic: now.checked_add(left).unwrap_or(now),
            },
        }
        .over_if(left.is_zero())
    }

    /// How much is left of the window of a task sealed at `since`; nothing when it is over.
    pub(crate) fn left(
        since: SystemTime,
        wall: SystemTime,
        window: Duration,
    ) -> Result<Option<Duration>, TooFarAhead> {
        let age = match wall.duration_since(since) {
            Ok(age) => age,
            Err(ahead) if ahead.duration() > SKEW => return Err(TooFarAhead),
            Err(_) => Duration::ZERO,
        };
        Ok(window.checked_sub(age).filter(|left| !left.is_zero()))
    }

    pub(in super::super) const fn deadline(&self) -> Deadline {
        self.deadline
    }

    const fn over_if(mut self, over: bool) -> Self {
        if over {
            self.deadline.wall = SystemTime::UNIX_EPOCH;
        }
        self
    }
}

impl Deadline {
    pub(in super::super) fn is_over(self, now: Instant, wall: SystemTime) -> bool {
        wall > self.wall || now > self.monotonic
    }

    /// The earlier of two, by each clock.
    pub(in super::super) fn min(self, other: Self) -> Self {
        Self {
            wall: self.wall.min(other.wall),
            monotonic: self.monotonic.min(other.monotonic),
        }
    }

    /// By the time of day.
    pub(in super::super) const fn wall(self) -> SystemTime {
        self.wall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn noon() -> SystemTime {
        SystemTime::UNIX_EPOCH + 500_000 * HOUR
    }

    #[test]
    fn whichever_clock_says_so_first_a_task_is_late() {
        let now = crate::driver::clock::now();
        let deadline = Release::at(now, noon(), HOUR).deadline();
        let second = Duration::from_secs(1);
        assert!(!deadline.is_over(now + HOUR, noon() + HOUR));
        assert!(
            deadline.is_over(now, noon() + HOUR + second),
            "the machine slept"
        );
        assert!(
            deadline.is_over(now + HOUR + second, noon() - HOUR),
            "the time of day was set back"
        );
    }

    #[test]
    fn a_deadline_that_no_clock_can_count_is_over_at_once() {
        let now = crate::driver::clock::now();
        let second = Duration::from_secs(1);
        for release in [
            Release::at(now, noon(), Duration::MAX),
            Release::restored(noon(), now, noon(), Duration::MAX),
        ] {
            assert!(release.deadline().is_over(now + second, noon()));
            assert!(release.deadline().is_over(now, noon() + second));
        }
    }

    #[test]
    fn a_restored_task_has_what_is_left_of_its_window() {
        let now = crate::driver::clock::now();
        let second = Duration::from_secs(1);
        let since = noon() - HOUR + second;
        let restored = Release::restored(since, now, noon(), HOUR).deadline();
        assert!(!restored.is_over(now + second, noon() + second));
        assert!(restored.is_over(now + 2 * second, noon()));
        assert!(restored.is_over(now, noon() + 2 * second));
        let over = Release::restored(noon() - HOUR, now, noon(), HOUR).deadline();
        assert!(over.is_over(now, noon()));
    }

    #[test]
    fn a_time_ahead_of_the_clock_says_nothing_about_age() {
        let now = crate::driver::clock::now();
        assert_eq!(
            Release::left(noon() + SKEW, noon(), HOUR),
            Ok(Some(HOUR)),
            "clocks of two machines differ a little"
        );
        let ahead = noon() + SKEW + Duration::from_millis(1);
        assert_eq!(Release::left(ahead, noon(), HOUR), Err(TooFarAhead));
        let deadline = Release::restored(ahead, now, noon(), HOUR).deadline();
        assert!(deadline.is_over(now, noon()));
    }
}
