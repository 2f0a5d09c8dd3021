//! What this process has used.

use nix::sys::resource::{UsageWho, getrusage};

use crate::Failure;

/// Processor time and memory of this process.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Usage {
    /// User and system time, in seconds.
    pub cpu_seconds: f64,
    /// The most memory it has had resident, in MB of 10^6 bytes.
    pub peak_rss_mb: f64,
    /// What it has resident now.
    pub rss_mb: f64,
}

impl Usage {
    /// What it has used so far.
    ///
    /// # Errors
    ///
    /// When the system does not say.
    pub fn now() -> Result<Self, Failure> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let seconds = |time: nix::sys::time::TimeVal| {
            let (whole, micros) = (time.tv_sec(), time.tv_usec());
            f64_of(whole) + f64_of(micros) / 1e6
        };
        Ok(Self {
            cpu_seconds: seconds(usage.user_time()) + seconds(usage.system_time()),
            // Linux counts in units of 1,024 bytes.
            peak_rss_mb: f64_of(usage.max_rss()) * 1024.0 / 1e6,
            rss_mb: resident()?,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn f64_of(number: i64) -> f64 {
    number as f64
}

fn resident() -> Result<f64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: f64 = kib.ok_or("no VmRSS in /proc/self/status")?.parse()?;
    Ok(kib * 1024.0 / 1e6)
}
