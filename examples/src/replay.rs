//! Dead letters, driven again to where they came from.
//!
//! [`replay`] reads the subscription of a topic that a `PubsubDeadLetterQueue` publishes to.
//! An element of the Pub/Sub sink is published again as the message it was, one of the Cloud Tasks
//! sink is created again as the task it was. A dead letter is acknowledged when its element has
//! arrived, and not before; what is refused once more, or says too little, stays in the
//! subscription.
//!
//! [`run`] shows it offline: both sinks reject, the cause is repaired, the letters are driven again.

mod element;
mod error;
mod report;
mod scene;

pub use element::{Element, Unusable};
pub use error::ReplayError;
pub use report::Report;

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use cloudtasks_sink::{CloudTasksSink, FullTask, QueueName, Submitted};
use connector_core::{LogAndDrop, Next, Receipt, next_when};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use gcp_wire::{Endpoint, Service};
use pubsub_sink::{MissingTopics, PublishMessage, Published, PubsubSink, TopicName};
use pubsub_source::{DeliveryId, Disposition, PubsubSource, SubscriptionName};

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
            eprintln!("{}", error::chain(&ended));
            ExitCode::from(2)
        }
    }
}

/// Drives the dead letters of a subscription again; without one, sets a scene and does so there.
///
/// # Errors
///
/// A [`ReplayError`]; what had arrived by then is acknowledged, and the rest is still in the
/// subscription.
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

/// What became of an element.
enum Outcome {
    Published,
    Created,
    RefusedAgain,
}

type Redriven = (DeliveryId, Result<Outcome, ReplayError>);

/// Drives the dead letters of `subscription` again until none has come for `idle`.
///
/// # Errors
///
/// A [`ReplayError`] when a connector ends; what had arrived by then is acknowledged, and the rest
/// is still in the subscription.
pub async fn replay(
    subscription: SubscriptionName,
    pubsub: Endpoint,
    tasks: Endpoint,
    idle: Duration,
) -> Result<Report, ReplayError> {
    let mut letters = PubsubSource::builder(subscription)
        .endpoint(pubsub.clone())
        .build()?;
    let mut messages: PubsubSink<(TopicName, PublishMessage)> =
        PubsubSink::builder(|element: &(TopicName, PublishMessage)| Ok(Some(element.1.clone())))
            .resolve(|element: &(TopicName, PublishMessage)| element.0.clone())
            .endpoint(pubsub)
            .message_ordering(true)
            // A name that is gone by now is the operator's to decide about.
            .missing_topics(MissingTopics::End)
            .on_rejected(LogAndDrop)
            .build()?;
    let mut calls: CloudTasksSink<(QueueName, FullTask)> =
        CloudTasksSink::builder(|element: &(QueueName, FullTask)| Ok(Some(element.1.clone())))
            .resolve(|element: &(QueueName, FullTask)| element.0.clone())
            .endpoint(tasks)
            .on_rejected(LogAndDrop)
            .build()?;

    let mut report = Report::default();
    let mut under_way: FuturesUnordered<BoxFuture<'static, Redriven>> = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some((delivery, outcome)) = under_way.next() => {
                let arrived = report.count(&outcome?);
                if arrived {
                    // The work belongs to the call; close waits for what is unconfirmed.
                    drop(letters.settle(delivery, Disposition::Ack)?);
                }
            }
            step = next_when(&mut letters, (&mut messages, &mut calls)) => {
                let letter = match step? {
                    Next::Record(letter) => letter,
                    Next::CheckpointWanted => continue,
                    Next::End => break,
                };
                report.letters += 1;
                let delivery = letter.delivery();
                let outcome = match Element::of(&letter) {
                    Ok(Element::Message(topic, message)) => {
                        published(messages.submit((topic, message)))
                    }
                    Ok(Element::Task(queue, task)) => created(calls.submit((queue, task))),
                    Err(unusable) => {
                        // Not settled: it stays in the subscription.
                        report.unusable.push(unusable);
                        continue;
                    }
                };
                under_way.push(async move { (delivery, outcome.await) }.boxed());
            }
            () = tokio::time::sleep(idle), if under_way.is_empty() => break,
        }
    }
    messages.close().await?;
    calls.close().await?;
    letters.close().await?;
    Ok(report)
}

fn published(receipt: Receipt<Published>) -> BoxFuture<'static, Result<Outcome, ReplayError>> {
    let outcome = async {
        let arrived = matches!(receipt.await?, Published::Stored { .. });
        Ok(if arrived {
            Outcome::Published
        } else {
            Outcome::RefusedAgain
        })
    };
    outcome.boxed()
}

fn created(receipt: Receipt<Submitted>) -> BoxFuture<'static, Result<Outcome, ReplayError>> {
    let outcome = async {
        let submitted = receipt.await?;
        let exists = matches!(
            submitted,
            Submitted::Created { .. } | Submitted::Duplicate { .. }
        );
        Ok(if exists {
            Outcome::Created
        } else {
            Outcome::RefusedAgain
        })
    };
    outcome.boxed()
}
