//! Why a run ended without its figures.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use checkpoint_store::StoreError;
use gcp_wire::{EndpointError, NameError, RpcError, SubscriptionName, TopicName, WireError};

/// Why a run of `orders` ended without its figures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrdersError {
    /// A name of the run's resources was refused.
    #[error("the run's resources have no valid names; nothing was created")]
    Name(#[from] NameError),
    /// `--pubsub` or `--tasks` is no `HOST:PORT`.
    #[error("no server can be reached under that address; nothing was created")]
    Endpoint(#[from] EndpointError),
    /// A connection could not be set up.
    #[error("no connection could be set up; nothing was created")]
    Wire(#[from] WireError),
    /// A socket, a process or a directory of the run itself could not be made.
    #[error("{what} could not be started; nothing was published")]
    Start {
        /// What it was.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A topic, subscription or queue could not be created.
    #[error("{name} could not be created; no order was published, check that the server runs")]
    Create {
        /// The full name of the resource.
        name: String,
        /// What the server said.
        source: RpcError,
    },
    /// An order could not be encoded.
    #[error("an order could not be encoded; nothing was published")]
    Encode(#[source] serde_json::Error),
    /// The shop's own publish failed.
    #[error(
        "orders could not be published to {topic}; the run was given up, since a second try could store them twice"
    )]
    Publish {
        /// The topic.
        topic: TopicName,
        /// What the server said.
        source: RpcError,
    },
    /// A region topic could no longer be counted.
    #[error("{subscription} can not be counted any more; what the pipeline did stands")]
    Count {
        /// The counting subscription.
        subscription: SubscriptionName,
        /// What the server said.
        source: RpcError,
    },
    /// The queues could not be listed at the end.
    #[error("the tasks still waiting could not be counted; what the pipeline did stands")]
    CountTasks {
        /// What the server said.
        source: RpcError,
    },
    /// The region topics never came to rest.
    #[error(
        "the region topics could not be read to their end within {}s; what the pipeline did stands",
        after.as_secs()
    )]
    Undrained {
        /// How long was tried.
        after: Duration,
    },
    /// Counting ended by a panic.
    #[error("counting the region topics ended by itself; what the pipeline did stands")]
    CountingEnded,
    /// The state directory could not be read.
    #[error("the checkpoints in {} could not be read", directory.display())]
    State {
        /// The state directory.
        directory: PathBuf,
        /// What the store said.
        source: StoreError,
    },
    /// The state directory could not be deleted, as `--lose-state` asks.
    #[error(
        "{} could not be deleted; the pipeline was not started again and its last checkpoint stands",
        directory.display()
    )]
    Lose {
        /// The state directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A child process could not be talked to.
    #[error("the {child} process could not be talked to; what it did stands")]
    Child {
        /// Which child process.
        child: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The pipeline ended with an error of its own, which is given in full.
    #[error("the pipeline ended: {0}")]
    Pipeline(PipelineText),
    /// The pipeline ended although nobody told it to.
    #[error("the pipeline ended by itself, without an error; its last checkpoint is complete")]
    Unasked,
    /// The pipeline dies again and again.
    #[error(
        "the pipeline died {deaths} times in a row without an order arriving in between; its last checkpoint stands"
    )]
    CrashLoop {
        /// How often.
        deaths: u32,
    },
    /// The pipeline died while it was being ended.
    #[error(
        "the pipeline died over its last checkpoint; what it had not confirmed comes again at the next start"
    )]
    DiedAtTheEnd,
    /// The pipeline did not end when told to.
    #[error(
        "the pipeline did not end within {}s and was killed; what it had not confirmed comes again", after.as_secs()
    )]
    Unstoppable {
        /// How long it was given.
        after: Duration,
    },
    /// SIGINT, as from the person at the terminal, or SIGTERM ended the run.
    #[error("interrupted; the pipeline took its last checkpoint")]
    Interrupted,
    /// The figures could not be written.
    #[error("the run is complete, and its figures could not be written to standard output")]
    Print(#[source] io::Error),
}

/// What the pipeline process said when it failed: its chain of errors in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineText(pub(super) String);

impl std::fmt::Display for PipelineText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An error and its sources in one line, each link once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut link = error.source();
    while let Some(source) = link {
        let next = source.to_string();
        // A transparent wrapper prints what it wraps, which then comes as its source again.
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        link = source.source();
    }
    text
}
