//! How fast tasks are created in one queue.

use std::time::{Duration, Instant};

/// The share of a second whose tasks may leave at once after a pause, so that timers need not be
/// exact.
const BURST: f64 = 0.1;

/// Rounding of sums of fractions must not make the last part of a task a wait of its own.
const ROUNDING: f64 = 1e-6;

/// The longest wait that is computed: whatever is slower is asked for again.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How the traffic to a queue may grow.
///
/// The bound holds for each queue by itself and counts attempts, as the service does. It follows the
/// traffic there was: an hour of silence does not allow a jump.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ramp {
    pub(crate) first: f64,
    pub(crate) growth: f64,
    pub(crate) every: Duration,
}

impl Ramp {
    /// At most 500 tasks a second at first, and in each five minutes at most half as many again as
    /// in the five before: what Google asks of traffic above 500 operations a second.
    #[must_use]
    pub const fn google() -> Self {
        Self::new(500.0, 1.5, Duration::from_secs(300))
    }

    /// At most `first` tasks a second at first, and in each span `every` at most `growth` times as
    /// many as in the span before, but never fewer than `first` a second.
    #[must_use]
    pub const fn new(first: f64, growth: f64, every: Duration) -> Self {
        Self {
            first,
            growth,
            every,
        }
    }
}

/// What bounds the traffic to each queue.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Pacing {
    pub(crate) ramp: Option<Ramp>,
    /// Tasks a second.
    pub(crate) rate: Option<f64>,
}

impl Pacing {
    pub(super) const fn is_none(&self) -> bool {
        self.ramp.is_none() && self.rate.is_none()
    }

    /// The pace of a queue without traffic so far; nothing where nothing bounds it.
    pub(super) fn pace(self, now: Instant) -> Option<Pace> {
        (!self.is_none()).then(|| Pace::new(self, now))
    }

    fn at_first(self) -> f64 {
        let ramp = self.ramp.map_or(f64::INFINITY, |ramp| ramp.first);
        ramp.min(self.rate.unwrap_or(f64::INFINITY))
    }
}

/// The pace of one queue: a bucket that fills at the rate of the moment.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    pacing: Pacing,
    rate: f64,
    /// Tasks that may leave now; a fraction of one too.
    level: f64,
    /// The time for which `level` holds.
    at: Instant,
    window: Instant,
    sent: f64,
}

impl Pace {
    pub(crate) fn new(pacing: Pacing, now: Instant) -> Self {
        let rate = pacing.at_first();
        Self {
            pacing,
            rate,
            level: capacity(rate),
            at: now,
            window: now,
            sent: 0.0,
        }
    }

    /// When the next task may leave, which is `now` when it may already.
    pub(crate) fn due(&mut self, now: Instant) -> Instant {
        self.advance(now);
        let missing = 1.0 - self.level;
        if missing <= ROUNDING {
            return now;
        }
        let wait = Duration::try_from_secs_f64(missing / self.rate).unwrap_or(LONGEST);
        // A wait of no length would never fill the bucket.
        let wait = wait.clamp(Duration::from_micros(1), LONGEST);
        now.checked_add(wait).unwrap_or(now)
    }

    /// A task leaves.
    pub(crate) fn take(&mut self, now: Instant) {
        self.advance(now);
        self.level -= 1.0;
        self.sent += 1.0;
    }

    /// Whether nothing is left of earlier traffic.
    pub(crate) fn is_fresh(&mut self, now: Instant) -> bool {
        self.advance(now);
        self.sent == 0.0
            && self.rate == self.pacing.at_first()
            && self.level >= capacity(self.rate) - ROUNDING
    }

    fn advance(&mut self, now: Instant) {
        // Each part of the time counts at the rate of its own span.
        if let Some(ramp) = self.pacing.ramp {
            for _ in 0..2 {
                // A span that the clock cannot count never ends.
                let Some(end) = self.window.checked_add(ramp.every) else {
                    break;
                };
                if end > now {
                    break;
                }
                self.fill(end);
                self.grow(ramp);
                self.window = end;
            }
            if now.saturating_duration_since(self.window) >= ramp.every {
                // Two spans have gone by, the second one without traffic.
                self.grow(ramp);
                self.window = now;
            }
        }
        self.fill(now);
    }

    fn fill(&mut self, now: Instant) {
        let span = now.saturating_duration_since(self.at);
        self.level = self
            .rate
            .mul_add(span.as_secs_f64(), self.level)
            .min(capacity(self.rate));
        self.at = self.at.max(now);
    }

    /// A span is over: what was sent in it bounds the next one.
    fn grow(&mut self, ramp: Ramp) {
        let seen = self.sent / ramp.every.as_secs_f64();
        let allowed = (seen * ramp.growth).max(ramp.first);
        self.rate = allowed.min(self.pacing.rate.unwrap_or(f64::INFINITY));
        self.level = self.level.min(capacity(self.rate));
        self.sent = 0.0;
    }
}

fn capacity(rate: f64) -> f64 {
    (rate * BURST).max(1.0)
}

#[cfg(test)]
mod tests;
