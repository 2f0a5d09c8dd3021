//! Where the time of day comes from.

use std::{fmt, sync::Arc, time::SystemTime};

/// The time of day as a host has it: the system's, or another one in tests.
///
/// For what outlives a process or is read by another one: a deadline, a schedule time, the end of a
/// lease in a saved state. It may jump in both directions; no wait should be measured with it.
///
/// A clone reads the same clock. Reading takes no lock of its own.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use connector_core::WallClock;
///
/// let midnight = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
/// let clock = WallClock::new(move || midnight);
/// assert_eq!(clock.now(), midnight);
/// ```
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl WallClock {
    /// A clock that asks `clock` each time it is read.
    pub fn new(clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(clock))
    }

    /// What the clock shows.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

/// The system's clock.
impl Default for WallClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "drivers and handles read it, and pass the time on to their machines"
    )]
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WallClock").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_and_its_clone_show_what_the_host_says_each_time_they_are_read() {
        let hours = Arc::new(AtomicU64::new(0));
        let host = Arc::clone(&hours);
        let clock = WallClock::new(move || {
            SystemTime::UNIX_EPOCH + Duration::from_secs(3_600 * host.load(Ordering::Relaxed))
        });
        let other = clock.clone();
        // Back as well: a host's clock may be set.
        for hour in [0, 30, 7] {
            hours.store(hour, Ordering::Relaxed);
            let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(3_600 * hour);
            assert_eq!((clock.now(), other.now()), (expected, expected));
        }
    }

    #[test]
    fn the_default_is_the_systems_clock() {
        let clock = WallClock::default();
        // The clock may be set back between two readings; three times in a row it is not.
        let agrees = (0..3).any(|_| {
            let (before, shown, after) = (system(), clock.now(), system());
            before <= shown && shown <= after
        });
        assert!(agrees);
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "what the default is compared with"
    )]
    fn system() -> SystemTime {
        SystemTime::now()
    }
}
