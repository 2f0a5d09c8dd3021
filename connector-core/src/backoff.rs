//! When to try again. A schedule only: no clock, no loop, no random numbers of its own.

use std::time::Duration;

/// How far a delay strays from the schedule: ±25 %, enough that clients which failed together do
/// not come back together. Not a setting: nobody was ever served by another figure.
const JITTER: f64 = 0.25;

/// A schedule of growing delays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    first: Duration,
    factor: f64,
    cap: Duration,
}

impl Backoff {
    /// Starts at `first`, grows by `factor` each time, and never exceeds `cap` before jitter.
    ///
    /// A factor below 1 counts as 1: delays never shrink.
    #[must_use]
    pub const fn new(first: Duration, factor: f64, cap: Duration) -> Self {
        Self { first, factor, cap }
    }

    /// The longest delay before jitter.
    #[must_use]
    pub const fn cap(&self) -> Duration {
        self.cap
    }

    /// Whether the schedule is what its numbers say: it starts at or below its cap, and grows by a
    /// factor of 1 or more. For settings, which refuse another instead of following it in part.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.factor >= 1.0 && self.first <= self.cap
    }

    /// The delay before attempt `attempt + 1`, counting failed attempts from 1, without jitter.
    #[must_use]
    pub fn delay(&self, attempt: u32) -> Duration {
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.first.as_secs_f64() * self.factor.max(1.0).powi(exponent);
        if seconds.is_finite() && seconds < self.cap.as_secs_f64() {
            // Rounding may carry the last nanosecond over the cap.
            Duration::from_secs_f64(seconds).min(self.cap)
        } else {
            self.cap
        }
    }

    /// The delay with ±25 % jitter. `random` is uniform in `0.0..1.0`; anything outside counts as
    /// the nearer end.
    #[must_use]
    pub fn jittered(&self, attempt: u32, random: f64) -> Duration {
        let random = if random.is_nan() {
            0.5
        } else {
            random.clamp(0.0, 1.0)
        };
        scaled(self.delay(attempt), 1.0 - JITTER + 2.0 * JITTER * random)
    }

    /// The delay with full jitter: anywhere between nothing and the schedule. For reconnecting
    /// streams, where many clients lose the same server at the same instant.
    #[must_use]
    pub fn full_jitter(&self, attempt: u32, random: f64) -> Duration {
        let random = if random.is_nan() {
            1.0
        } else {
            random.clamp(0.0, 1.0)
        };
        scaled(self.delay(attempt), random)
    }
}

/// `Duration::mul_f64` panics beyond its range, and a cap of `Duration::MAX` is a fair setting.
fn scaled(delay: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(delay.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}
