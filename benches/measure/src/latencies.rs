//! How long things took.

use std::time::Duration;

/// Durations, of which percentiles are asked at the end.
#[derive(Debug, Default)]
pub struct Latencies {
    millis: Vec<f64>,
}

impl Latencies {
    /// One more.
    pub fn add(&mut self, took: Duration) {
        self.millis.push(took.as_secs_f64() * 1e3);
    }

    /// The percentiles 50, 95 and 99, in milliseconds; `None` without any measurement.
    #[must_use]
    pub fn percentiles(mut self) -> Option<[f64; 3]> {
        self.millis.sort_by(f64::total_cmp);
        let last = self.millis.len().checked_sub(1)?;
        Some([50, 95, 99].map(|percent| self.millis[last * percent / 100]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_measured() {
        let mut latencies = Latencies::default();
        assert_eq!(Latencies::default().percentiles(), None);
        for millis in (0..=100).rev() {
            latencies.add(Duration::from_millis(millis));
        }
        assert_eq!(latencies.percentiles(), Some([50.0, 95.0, 99.0]));
    }
}
