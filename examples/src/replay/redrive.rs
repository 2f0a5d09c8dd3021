//! The loop: letters in, elements out, acknowledgements for what arrived.

use std::time::Duration;

use cloudtasks_sink::{CloudTasksSink, FullTask, QueueName};
use connector_core::{LogAndDrop, Next, next_when};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use gcp_wire::Endpoint;
use pubsub_sink::{MissingTopics, PublishMessage, PubsubSink, TopicName};
use pubsub_source::{DeliveryId, Disposition, Message, PubsubSource, SubscriptionName};

use super::{
    Element, ReplayError, Report,
    outcome::{Outcome, created, published},
    report::MOST_HELD,
};

type Redriven = (DeliveryId, Result<Outcome, ReplayError>);

/// The three connectors, and what is between them.
pub(super) struct Redrive {
    letters: PubsubSource,
    messages: PubsubSink<(TopicName, PublishMessage)>,
    calls: CloudTasksSink<(QueueName, FullTask)>,
    under_way: FuturesUnordered<BoxFuture<'static, Redriven>>,
    report: Report,
}

impl Redrive {
    pub(super) fn build(
        subscription: SubscriptionName,
        pubsub: Endpoint,
        tasks: Endpoint,
    ) -> Result<Self, ReplayError> {
        let letters = PubsubSource::builder(subscription)
            .endpoint(pubsub.clone())
            // There are no commits here with which the limit would grow, and what stays is held.
            .outstanding(MOST_HELD)
            .first_outstanding(MOST_HELD)
            .build()?;
        let messages = PubsubSink::builder(|element: &(TopicName, PublishMessage)| {
            Ok(Some(element.1.clone()))
        })
        .resolve(|element: &(TopicName, PublishMessage)| element.0.clone())
        .endpoint(pubsub)
        .message_ordering(true)
        // A name that is gone by now is the operator's to decide about.
        .missing_topics(MissingTopics::End)
        .on_rejected(LogAndDrop)
        // All of these were refused before: many in a row say nothing, and none is lost.
        .max_consecutive_rejections(None)
        .build()?;
        let calls =
            CloudTasksSink::builder(|element: &(QueueName, FullTask)| Ok(Some(element.1.clone())))
                .resolve(|element: &(QueueName, FullTask)| element.0.clone())
                .endpoint(tasks)
                .on_rejected(LogAndDrop)
                .max_consecutive_rejections(None)
                .build()?;
        Ok(Self {
            letters,
            messages,
            calls,
            under_way: FuturesUnordered::new(),
            report: Report::default(),
        })
    }

    /// Drives letters again until none has come for `idle`.
    pub(super) async fn drive(&mut self, idle: Duration) -> Result<(), ReplayError> {
        loop {
            tokio::select! {
                biased;
                Some((delivery, outcome)) = self.under_way.next() => {
                    self.settle(delivery, outcome)?;
                }
                step = next_when(&mut self.letters, (&mut self.messages, &mut self.calls)) => {
                    match step? {
                        Next::Record(letter) => self.take(&letter),
                        Next::CheckpointWanted => {}
                        Next::End => return Ok(()),
                    }
                }
                () = tokio::time::sleep(idle), if self.under_way.is_empty() => return Ok(()),
            }
        }
    }

    /// Waits for what is under way, and lets the acknowledgements leave. After an error as well: what
    /// has arrived must not be driven again for the sake of what has not.
    pub(super) async fn end(&mut self) -> Result<(), ReplayError> {
        let (messages, calls) = futures::join!(self.messages.close(), self.calls.close());
        let mut settled = Ok(());
        while let Some((delivery, outcome)) = self.under_way.next().await {
            settled = settled.and(self.settle(delivery, outcome));
        }
        let letters = self.letters.close().await;
        messages?;
        calls?;
        settled?;
        Ok(letters?)
    }

    pub(super) fn into_report(self) -> Report {
        self.report
    }

    /// Sends a letter's element on its way.
    fn take(&mut self, letter: &Message) {
        self.report.letters += 1;
        let delivery = letter.delivery();
        let outcome = match Element::of(letter) {
            Ok(Element::Message(topic, message)) => {
                published(self.messages.submit((topic, message)))
            }
            Ok(Element::Task(queue, task)) => created(self.calls.submit((queue, task))),
            Err(unusable) => {
                // Not settled: it stays in the subscription.
                self.report.unusable.push(unusable);
                return;
            }
        };
        self.under_way
            .push(async move { (delivery, outcome.await) }.boxed());
    }

    /// It is known what became of a letter's element.
    fn settle(
        &mut self,
        delivery: DeliveryId,
        outcome: Result<Outcome, ReplayError>,
    ) -> Result<(), ReplayError> {
        if self.report.count(outcome?) {
            // The work belongs to the call; close waits for what is unconfirmed.
            drop(self.letters.settle(delivery, Disposition::Ack)?);
        }
        Ok(())
    }
}
