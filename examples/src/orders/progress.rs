//! Live progress: bars on a terminal, plain lines elsewhere.

use std::fmt;
use std::io::{self, IsTerminal, Write as _};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Orders that reached their region.
    pub(crate) published: u64,
    /// Orders that reached the partner.
    pub(crate) called: u64,
}

/// Between two plain lines; a log wants fewer than an eye.
const LINE_EVERY: Duration = Duration::from_secs(2);

/// How a bar looks. The template is a constant, so it is a plain bar in every run or in none.
fn style() -> ProgressStyle {
    let template = "{prefix:>20} {wide_bar} {human_pos}/{human_len} {rate:>8}";
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_refused| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            // A line that cannot be written is a line that cannot be seen.
            write!(out, "{:.0}/s", state.per_sec()).unwrap_or_default();
        })
}

/// One line on standard error. Progress is no reason to end: whoever closed it has nobody to tell.
pub(crate) fn tell(line: &str) {
    writeln!(io::stderr(), "{line}").unwrap_or_default();
}

/// Where progress goes: always standard error, since standard output ends with the figures.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Bars that are drawn over.
    Bars {
        screen: MultiProgress,
        published: ProgressBar,
        called: ProgressBar,
    },
    /// A line now and then.
    Lines {
        orders: u64,
        routed: u64,
        /// The last line.
        last: Option<(Instant, Shown)>,
        /// What a next line would say.
        newest: Option<Shown>,
    },
}

impl Progress {
    /// Bars when standard error is a terminal.
    pub(crate) fn start(orders: u64, routed: u64) -> Self {
        if !io::stderr().is_terminal() {
            return Self::Lines {
                orders,
                routed,
                last: None,
                newest: None,
            };
        }
        let screen = MultiProgress::new();
        let bar = |length, what: &'static str| {
            let bar = screen.add(ProgressBar::new(length));
            bar.set_style(style());
            bar.with_prefix(what)
        };
        let published = bar(orders, "published to regions");
        let called = bar(routed, "taken by partners");
        Self::Bars {
            screen,
            published,
            called,
        }
    }

    /// Shows how far the run is.
    pub(crate) fn show(&mut self, now: Instant, shown: Shown) {
        match self {
            Self::Bars {
                published, called, ..
            } => {
                published.set_position(shown.published);
                called.set_position(shown.called);
            }
            Self::Lines {
                orders,
                routed,
                last,
                newest,
            } => {
                *newest = Some(shown);
                let due = last.is_none_or(|(at, before)| {
                    now.duration_since(at) >= LINE_EVERY && before != shown
                });
                if due {
                    tell(&line(shown, *orders, *routed));
                    *last = Some((now, shown));
                }
            }
        }
    }

    /// Says something that happened, above the bars.
    pub(crate) fn say(&self, text: &str) {
        match self {
            // A terminal that went away has nobody to tell.
            Self::Bars { screen, .. } => drop(screen.println(text)),
            Self::Lines { .. } => tell(text),
        }
    }

    /// Leaves the bars as they are; the last line says where the run ended.
    pub(crate) fn finish(self) {
        match self {
            Self::Bars {
                published, called, ..
            } => {
                published.abandon();
                called.abandon();
                // The cursor stands behind the last bar.
                tell("");
            }
            Self::Lines {
                orders,
                routed,
                last,
                newest,
            } => {
                if let Some(end) = newest
                    && last.is_none_or(|(_, told)| told != end)
                {
                    tell(&line(end, orders, routed));
                }
            }
        }
    }
}

fn line(shown: Shown, orders: u64, routed: u64) -> String {
    let Shown { published, called } = shown;
    format!("{published} of {orders} published to regions, {called} of {routed} taken by partners")
}
