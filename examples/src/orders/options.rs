//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use super::routes::Share;

/// The flags of the `orders` program.
///
/// Made from arguments, so that a test says what a user would type:
///
/// ```
/// use clap::Parser;
/// use examples::orders::Options;
///
/// let options = Options::try_parse_from(["orders", "--orders", "300", "--crash-after", "100"])?;
/// assert!(Options::try_parse_from(["orders", "--orders", "none"]).is_err());
/// # Ok::<(), clap::Error>(())
/// ```
#[derive(Debug, Clone, Parser)]
#[command(
    name = "orders",
    about = "Order events in; region topics, partner calls and checkpoints out. Counts what is lost.",
    long_about = None,
    args_conflicts_with_subcommands = true
)]
pub struct Options {
    /// How many orders to publish and to wait for
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) orders: u32,

    /// How often the pipeline takes a checkpoint
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = interval)]
    pub(super) checkpoint_interval: Duration,

    /// Abort the pipeline after about N orders were read, and start it again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) crash_after: Option<u64>,

    /// Kill the pipeline every so often, and start it again
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    pub(super) kill_every: Option<Duration>,

    /// Orders published a second; as fast as the server takes them unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rate: Option<u32>,

    /// A Pub/Sub emulator that is already running, instead of the embedded one
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) pubsub: Option<String>,

    /// A dispatching Cloud Tasks emulator that is already running, instead of the embedded one
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) tasks: Option<String>,

    /// Where checkpoints are kept; a temporary directory unless given
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,

    /// The seed the orders are made from
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(super) seed: u64,

    /// The share of customers without a route, from 0 to 1
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0",
        allow_negative_numbers = true
    )]
    pub(super) unrouted_share: Share,

    /// Create tasks up to a hundred in one call, instead of one by one
    #[arg(long)]
    pub(super) batch: bool,

    /// Create each task once, when the checkpoint that holds it is committed
    #[arg(long)]
    pub(super) exactly_once: bool,

    /// Print the figures as one JSON object, the very last line
    #[arg(long)]
    pub(super) json: bool,

    /// Delete the state directory's checkpoints between the crash and the restart
    #[arg(long, hide = true, requires = "crash_after")]
    pub(super) lose_state: bool,

    /// The pipeline reaches Pub/Sub here, by a proxy that a test puts in its way
    #[arg(long, hide = true, value_name = "HOST:PORT")]
    pub(super) pipeline_by: Option<String>,

    /// Reach `--pubsub` over TLS, signed in with this service-account key
    #[arg(long, hide = true, value_name = "FILE", requires = "pubsub")]
    pub(super) key_file: Option<PathBuf>,

    #[command(subcommand)]
    pub(super) role: Option<Role>,
}

/// What a child process of the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(super) enum Role {
    /// Reads what to do from the first line of standard input; ends at its end
    #[command(hide = true)]
    Pipeline,
    /// Reads the queues' names from the first line of standard input; ends at its end
    #[command(hide = true)]
    TasksServer,
}

impl Role {
    /// The argument that gives a process this role.
    pub(super) const fn argument(self) -> &'static str {
        match self {
            Self::Pipeline => "pipeline",
            Self::TasksServer => "tasks-server",
        }
    }
}

/// A checkpoint interval: above nothing, and short enough to have several in a run.
fn interval(text: &str) -> Result<Duration, IntervalError> {
    let interval = humantime::parse_duration(text)?;
    if interval.is_zero() || interval > LONGEST_INTERVAL {
        return Err(IntervalError::Range);
    }
    Ok(interval)
}

/// Beyond it the source would call the pipeline stalled: it expects a checkpoint within 10 minutes.
const LONGEST_INTERVAL: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, thiserror::Error)]
enum IntervalError {
    #[error("write a number with a unit, for example 500ms or 2s")]
    Text(#[from] humantime::DurationError),
    #[error("an interval lies above 0s and is at most {}s", LONGEST_INTERVAL.as_secs())]
    Range,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
        Options::try_parse_from([&["orders"], arguments].concat())
    }

    #[test]
    fn the_defaults_are_those_of_the_readme() {
        let options = parse(&[]).unwrap();
        assert_eq!(options.orders, 20_000);
        assert_eq!(options.checkpoint_interval, Duration::from_secs(2));
        assert_eq!(options.seed, 1);
        assert_eq!(options.unrouted_share, "0".parse().unwrap());
        assert_eq!(options.crash_after, None);
        assert!(options.kill_every.is_none() && options.rate.is_none());
        assert!(options.pubsub.is_none() && options.tasks.is_none() && options.state.is_none());
        assert!(!options.json && !options.batch && options.role.is_none());
        assert!(!options.exactly_once);
    }

    #[test]
    fn every_documented_flag_is_taken() {
        let line = "--orders 20 --checkpoint-interval 500ms --crash-after 7 --kill-every 20s --rate 100 --pubsub 127.0.0.1:1 \
                    --tasks 127.0.0.1:2 --state d --seed 3 --unrouted-share 0.1 --batch --exactly-once --json";
        let options = parse(&line.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert_eq!(options.checkpoint_interval, Duration::from_millis(500));
        assert_eq!(options.crash_after, Some(7));
        assert_eq!(options.kill_every, Some(Duration::from_secs(20)));
        assert_eq!(options.rate, Some(100));
        assert!(options.json && options.batch && options.exactly_once);
    }

    #[test]
    fn a_value_that_makes_no_run_is_refused_before_anything_starts() {
        for wrong in [
            &["--orders", "0"][..],
            &["--crash-after", "0"],
            &["--kill-every", "0s"],
            &["--rate", "0"],
            &["--checkpoint-interval", "2"],
            &["--checkpoint-interval", "0s"],
            &["--checkpoint-interval", "6m"],
            &["--unrouted-share", "2"],
            &["--unrouted-share", "NaN"],
            &["--unrouted-share", "-0.1"],
            &["--lose-state"],
            &["--key-file", "k.json"],
            &["--json", "pipeline"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_role_is_given_by_its_argument_and_shown_to_nobody() {
        for role in [Role::Pipeline, Role::TasksServer] {
            assert_eq!(parse(&[role.argument()]).unwrap().role, Some(role));
        }
        let help = <Options as clap::CommandFactory>::command()
            .render_long_help()
            .to_string();
        for hidden in [
            "tasks-server",
            "lose-state",
            "key-file",
            "pipeline-by",
            "Commands",
            "```",
        ] {
            assert!(!help.contains(hidden), "{help}");
        }
    }
}
