//! A host: the loop of the documentation, with policies and accidents of its own.

use std::collections::BTreeMap;

use checkpoint_store::FileStore;
use cloudtasks_sink::{CloudTasksSink, Resolution};
use connector_core::{Budget, Epoch, Next, host::Settling, next_when};
use futures::{
    FutureExt, SinkExt, StreamExt,
    future::LocalBoxFuture,
    stream::{FuturesOrdered, FuturesUnordered},
};
use gcp_emulator::pubsub::proto::PubsubMessage;
use pubsub_sink::PubsubSink;
use pubsub_source::{Message, PubsubSource};
use tokio::{task::JoinSet, time::Interval};

use crate::{bugs::Bug, checkpoints::Sealed, truth::payload, world::World};

/// The most messages in one response of the server.
pub(crate) const RESPONSE: usize = 5;

/// How a host's life ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The process died.
    Died,
    /// The host gave up, to begin anew.
    GaveUp,
    /// A connector ended.
    #[expect(dead_code, reason = "shown by Debug")]
    Connector(String),
}

pub(crate) fn connector(error: impl std::fmt::Debug) -> Ended {
    Ended::Connector(format!("{error:?}"))
}

pub(crate) struct Host<'w> {
    pub(crate) world: &'w World,
    pub(crate) store: FileStore,
    pub(crate) source: PubsubSource,
    pub(crate) publish: PubsubSink<usize>,
    pub(crate) tasks: CloudTasksSink<usize>,
    pub(crate) drivers: JoinSet<()>,
    pub(crate) budgets: [Budget; 3],
    pub(crate) epoch: Epoch,
    pub(crate) saved: Epoch,
    pub(crate) cuts: BTreeMap<Epoch, usize>,
    pub(crate) sealing: FuturesOrdered<LocalBoxFuture<'static, Sealed>>,
    pub(crate) commits: FuturesUnordered<Settling>,
    pub(crate) tick: Interval,
    /// No fault of the host's own any more.
    pub(crate) careful: bool,
    /// For bugs: a record in the host's hands, and the state before.
    pub(crate) held: Option<usize>,
    pub(crate) stale: Option<pubsub_sink::SinkState>,
}

impl Host<'_> {
    /// Ends well only when there is nothing left to do.
    pub(crate) async fn live(&mut self) -> Result<(), Ended> {
        loop {
            self.look();
            let reads = self.world.plan.overlap || self.sealing.is_empty();
            let cut = tokio::select! { biased;
                Some(done) = self.commits.next() => { self.settle(done).await?; false }
                Some(sealed) = self.sealing.next() => { self.keep(sealed).await?; false }
                _ = self.tick.tick() => {
                    self.operate();
                    if self.is_done() {
                        return Ok(());
                    }
                    true
                }
                step = next_when(&mut self.source, (&mut self.publish, &mut self.tasks)), if reads => {
                    match step.map_err(connector)? {
                        Next::Record(message) => { self.take(&message)?; false }
                        Next::CheckpointWanted => {
                            self.world.count("a checkpoint was asked for");
                            true
                        }
                        Next::End => unreachable!("nobody stopped the source"),
                    }
                }
            };
            if cut && self.sealing.len() < if self.world.plan.overlap { 3 } else { 1 } {
                self.cut();
            }
        }
    }

    /// What the servers did, and what is held, is within the laws.
    pub(crate) fn look(&self) {
        self.world.look();
        // A source may hold one response of its stream, and of the stream's successor, beyond it.
        let beyond = [2 * RESPONSE, 0, 0];
        for (budget, beyond) in self.budgets.iter().zip(beyond) {
            let (held, limits) = (budget.held(), budget.limits());
            let most = limits.items + beyond;
            assert!(held.items <= most, "{held:?} held of {limits:?}");
        }
    }

    fn is_done(&self) -> bool {
        self.world.is_calm()
            && self.commits.is_empty()
            && self.sealing.is_empty()
            && self.publish.quarantined().is_empty()
            && self.tasks.refused().is_empty()
            && self.tasks.expired().is_empty()
            && self.world.is_drained()
    }

    fn take(&mut self, message: &Message) -> Result<(), Ended> {
        let number = payload(message.data()).unwrap();
        self.world.tell(format_args!("host: {number}"));
        self.world.truth().hand_out(number);
        if self.world.bug == Some(Bug::HeldOverCut) && self.held.is_none() {
            self.held = Some(number);
            return Ok(());
        }
        if let Some(held) = self.held.take() {
            self.give(held)?;
        }
        self.give(number)
    }

    fn give(&mut self, number: usize) -> Result<(), Ended> {
        self.publish.start_send_unpin(number).map_err(connector)?;
        self.tasks.start_send_unpin(number).map_err(connector)
    }

    /// For bugs: a record that comes between two cuts.
    pub(crate) fn take_one_more(&mut self) {
        let step = next_when(&mut self.source, (&mut self.publish, &mut self.tasks));
        if let Some(Ok(Next::Record(message))) = step.now_or_never() {
            self.take(&message).unwrap();
        }
    }

    /// What an operator does with what was kept aside: a state from before it may bring it back, so
    /// tasks are looked for first.
    pub(crate) fn operate(&mut self) {
        let kept = self.publish.quarantined();
        if !kept.is_empty() {
            let mut truth = self.world.truth();
            for message in &kept {
                let copy: PubsubMessage = prost::Message::decode(&message.message[..]).unwrap();
                truth.named[payload(&copy.data).unwrap()] += 1;
            }
            self.publish.publish_quarantined(|_| true);
        }
        let expired = self.tasks.expired();
        if !expired.is_empty() {
            self.world.count("expired tasks were kept aside");
        }
        let seen = self.world.emulator.observe();
        for task in self.tasks.refused().into_iter().chain(expired) {
            let name = task.name();
            let queue = seen.queue(task.queue().as_str());
            let was_created = queue.created.iter().any(|created| created.name == name);
            let resolution = if was_created {
                Resolution::MarkCommitted
            } else {
                Resolution::Force
            };
            self.tasks.resolve(&name, resolution).ok();
        }
    }
}
