//! The line of JSON at the end.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::{Failure, Latencies, Usage};

/// What all modes take.
#[derive(Debug, Args, Clone)]
#[non_exhaustive]
pub struct Flags {
    /// Where the server is, as HOST:PORT: plain HTTP/2, no credentials. Without it a server made
    /// for load is started in another process.
    #[arg(long)]
    pub endpoint: Option<String>,
    /// How long to measure.
    #[arg(long, default_value_t = 10.0, value_parser = period)]
    pub secs: f64,
    /// Ends after so many messages, and not after a time; without a warm-up. For counting
    /// instructions, of which a given time would be no measure.
    #[arg(long, conflicts_with_all = ["secs", "warm_up"])]
    pub messages: Option<u64>,
    /// 1 for a current-thread runtime, more for a multi-thread runtime of so many workers.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Seconds before the measurement begins.
    #[arg(long, default_value_t = 1.0, value_parser = span)]
    pub warm_up: f64,
}

impl Flags {
    /// How long to wait before the measurement begins.
    #[must_use]
    pub fn before(&self) -> Duration {
        match self.messages {
            Some(_) => Duration::ZERO,
            None => Duration::from_secs_f64(self.warm_up),
        }
    }

    /// How long it lasts; an hour where a number of messages ends it.
    #[must_use]
    pub fn lasting(&self) -> Duration {
        match self.messages {
            Some(_) => Duration::from_secs(3600),
            None => Duration::from_secs_f64(self.secs),
        }
    }

    /// The number of messages that ends it.
    #[must_use]
    pub fn enough(&self) -> u64 {
        self.messages.unwrap_or(u64::MAX)
    }
}

/// Reads a number of seconds, which may be none.
///
/// # Errors
///
/// When it is no number, or none of seconds that a clock can count.
pub fn span(text: &str) -> Result<f64, Failure> {
    let seconds: f64 = text.parse()?;
    Duration::try_from_secs_f64(seconds)?;
    Ok(seconds)
}

/// Reads a number of seconds that is more than nothing.
///
/// # Errors
///
/// As [`span`], and for nothing.
pub fn period(text: &str) -> Result<f64, Failure> {
    let seconds = span(text)?;
    if Duration::from_secs_f64(seconds).is_zero() {
        return Err("longer than nothing is needed".into());
    }
    Ok(seconds)
}

/// What was measured. The names are a promise to scripts.
#[derive(Debug, Serialize)]
struct Report {
    mode: &'static str,
    messages: u64,
    seconds: f64,
    rate: f64,
    /// The fewest messages of any one second; `None` where that was not watched.
    slowest_second: Option<u64>,
    cpu_seconds: f64,
    cpu_seconds_per_million: f64,
    peak_rss_mb: f64,
    base_rss_mb: f64,
    held_max: u64,
    extended_ids: u64,
    suppressed: u64,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
    errors: u64,
}

/// What a mode counted between two looks at the clock.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by the programs beside this crate, and by nobody else"
)]
pub struct Measured {
    /// What was done.
    pub mode: &'static str,
    /// How many messages.
    pub messages: u64,
    /// In how long.
    pub seconds: f64,
    /// The fewest of any one second, where that was watched.
    pub slowest_second: Option<u64>,
    /// Before anything was made.
    pub base: Usage,
    /// When the measurement began.
    pub before: Usage,
    /// When it ended.
    pub after: Usage,
    /// How long commits, publishes or creations took.
    pub latencies: Latencies,
    /// The most that was under way at once.
    pub held_max: u64,
    /// Ids whose lease was extended.
    pub extended_ids: u64,
    /// Redeliveries that were not handed out.
    pub suppressed: u64,
    /// What failed.
    pub errors: u64,
}

/// A client without a server waits in silence: this is what is said for it.
#[must_use]
pub fn nothing_in(seconds: f64) -> Failure {
    format!("nothing came through in {seconds:.1} s: is there a server at the endpoint?").into()
}

impl Measured {
    /// Prints the line.
    ///
    /// # Errors
    ///
    /// When nothing came through, of which there is no cost to tell; when the line cannot be written.
    pub fn print(self) -> Result<(), Failure> {
        if self.messages == 0 {
            return Err(nothing_in(self.seconds));
        }
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
