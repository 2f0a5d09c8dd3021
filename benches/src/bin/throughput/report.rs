//! The line of JSON at the end.

use clap::Args;
use serde::Serialize;

use crate::{Failure, latencies::Latencies, usage::Usage};

/// What all modes take.
#[derive(Debug, Args, Clone)]
pub(crate) struct Common {
    /// Where the server is, as HOST:PORT: plain HTTP/2, no credentials. Without it a server made
    /// for load is started in another process.
    #[arg(long)]
    pub(crate) endpoint: Option<String>,
    /// How long to measure.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) secs: f64,
    /// 1 for a current-thread runtime, more for a multi-thread runtime of so many workers.
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Seconds before the measurement begins.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) warm_up: f64,
}

/// What was measured. The names are a promise to scripts.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) mode: &'static str,
    pub(crate) messages: u64,
    pub(crate) seconds: f64,
    pub(crate) rate: f64,
    /// The lowest rate within any one second.
    pub(crate) slowest_second: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) cpu_seconds_per_million: f64,
    pub(crate) peak_rss_mb: f64,
    pub(crate) base_rss_mb: f64,
    pub(crate) held_max: u64,
    pub(crate) extended_ids: u64,
    pub(crate) suppressed: u64,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) errors: u64,
}

/// What a mode counted between two looks at the clock.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) mode: &'static str,
    pub(crate) messages: u64,
    pub(crate) seconds: f64,
    pub(crate) slowest_second: f64,
    pub(crate) base: Usage,
    pub(crate) before: Usage,
    pub(crate) after: Usage,
    pub(crate) latencies: Latencies,
    pub(crate) held_max: u64,
    pub(crate) extended_ids: u64,
    pub(crate) suppressed: u64,
    pub(crate) errors: u64,
}

impl Measured {
    /// Prints the line.
    pub(crate) fn print(self) -> Result<(), Failure> {
        let percentiles = self.latencies.percentiles();
        let cpu_seconds = self.after.cpu_seconds - self.before.cpu_seconds;
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
        let messages = self.messages as f64;
        let report = Report {
            mode: self.mode,
            messages: self.messages,
            seconds: self.seconds,
            rate: messages / self.seconds,
            slowest_second: self.slowest_second,
            cpu_seconds,
            cpu_seconds_per_million: cpu_seconds / messages * 1e6,
            peak_rss_mb: self.after.peak_rss_mb,
            base_rss_mb: self.base.rss_mb,
            held_max: self.held_max,
            extended_ids: self.extended_ids,
            suppressed: self.suppressed,
            p50_ms: percentiles.map(|[p50, ..]| p50),
            p95_ms: percentiles.map(|[_, p95, _]| p95),
            p99_ms: percentiles.map(|[.., p99]| p99),
            errors: self.errors,
        };
        println!("{}", serde_json::to_string(&report)?);
        Ok(())
    }
}
