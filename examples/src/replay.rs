//! Dead letters, driven again to where they came from.
//!
//! [`replay`] reads the subscription of a topic that a `PubsubDeadLetterQueue` publishes to.
//! An element of the Pub/Sub sink is published again as the message it was, one of the Cloud Tasks
//! sink is created again as the task it was. A dead letter is acknowledged when its element has
//! arrived, and not before; what is refused once more, or says too little, stays in the
//! subscription, and is held until the program ends.
//!
//! [`run`] shows it offline: both sinks reject, the cause is repaired, the letters are driven again.

mod element;
mod error;
mod outcome;
mod redrive;
mod report;
mod scene;

pub use element::{Element, Unusable};
pub use error::ReplayError;
pub use outcome::RefusedAgain;
pub use report::Report;

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use gcp_wire::{Endpoint, Service};
use pubsub_source::SubscriptionName;

use crate::orders::chain;
use redrive::Redrive;
use scene::Scene;

/// How `replay_dead_letters` is called. Without a subscription it shows itself, offline.
#[derive(Debug, Clone, Parser)]
#[non_exhaustive]
pub struct Options {
    /// The subscription of the dead letters' topic, `projects/P/subscriptions/S`.
    #[arg(long)]
    pub subscription: Option<SubscriptionName>,
    /// A Pub/Sub emulator instead of the service, `HOST:PORT`.
    #[arg(long)]
    pub pubsub: Option<String>,
    /// A Cloud Tasks emulator instead of the service, `HOST:PORT`.
    #[arg(long)]
    pub tasks: Option<String>,
    /// Ends when no dead letter has come for so long.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    pub idle: Duration,
}

/// The program `replay_dead_letters`.
#[must_use]
pub fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime could be started; nothing was read: {error}");
            return ExitCode::from(2);
        }
    };
    match runtime.block_on(run(&options)) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(ended) => {
            eprintln!("{}", chain(&ended));
            ExitCode::from(2)
        }
    }
}

/// Drives the dead letters of a subscription again; without one, sets a scene and does so there.
///
/// # Errors
///
/// A [`ReplayError`], as of [`replay`].
pub async fn run(options: &Options) -> Result<Report, ReplayError> {
    let Some(subscription) = options.subscription.clone() else {
        return Scene::set().await?.play(options.idle).await;
    };
    let reach = |address: &Option<String>, service| match address {
        Some(address) => Endpoint::emulator(address),
        None => Ok(Endpoint::production(service)),
    };
    let pubsub = reach(&options.pubsub, Service::Pubsub)?;
    let tasks = reach(&options.tasks, Service::CloudTasks)?;
    replay(subscription, pubsub, tasks, options.idle).await
}

/// Drives the dead letters of `subscription` again until none has come for `idle`.
///
/// # Errors
///
/// A [`ReplayError`] when a connector ends. What is under way is waited for all the same, and the
/// letters of what arrived are acknowledged; where that could not be confirmed they may be driven
/// again. The rest is still in the subscription.
pub async fn replay(
    subscription: SubscriptionName,
    pubsub: Endpoint,
    tasks: Endpoint,
    idle: Duration,
) -> Result<Report, ReplayError> {
    let mut redrive = Redrive::build(subscription, pubsub, tasks)?;
    let driven = redrive.drive(idle).await;
    let ended = redrive.end().await;
    driven.and(ended)?;
    Ok(redrive.into_report())
}
