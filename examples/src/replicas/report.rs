//! The figures at the end of a run.

use std::error::Error;
use std::io::{self, Write as _};

/// What was counted, from what the readers had saved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Orders published, half of them before the job's subscription existed.
    pub orders: usize,
    /// Orders in the durable counts.
    pub counted: usize,
    /// Orders in those that were durable when the first readers died.
    pub before_crash: usize,
    /// Orders in none of them.
    pub lost: usize,
    /// Orders in two of them.
    pub counted_twice: usize,
    /// How often the job was started.
    pub starts: u32,
    /// How often its subscription was sought.
    pub seeks: u64,
}

impl Report {
    /// What the program ends with: 1 when orders were lost or counted twice, else 0.
    #[must_use]
    pub const fn exit_status(&self) -> u8 {
        if self.lost == 0 && self.counted_twice == 0 {
            0
        } else {
            1
        }
    }
}

/// Prints the figures for people. A reader that has seen enough changes nothing about the run.
pub(super) fn print(report: &Report) {
    let lines = [
        ("orders", report.orders.to_string()),
        ("counted", report.counted.to_string()),
        ("before crash", report.before_crash.to_string()),
        ("lost", report.lost.to_string()),
        ("counted twice", report.counted_twice.to_string()),
        ("starts", report.starts.to_string()),
        ("seeks", report.seeks.to_string()),
    ];
    let mut out = io::stdout().lock();
    for (name, figure) in lines {
        writeln!(out, "{name:<14}{figure:>8}").unwrap_or_default();
    }
}

/// Says on standard error why the run ended.
pub(super) fn tell(error: &dyn Error) {
    let mut text = format!("replicas: {error}");
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    writeln!(io::stderr(), "{text}").unwrap_or_default();
}
