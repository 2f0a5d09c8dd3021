//! A host that publishes what it reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use connector_core::{Checkpoint, Committed, Epoch, Receipt};
use futures::{SinkExt, StreamExt, stream::FuturesUnordered};
use pubsub_sink::{PublishMessage, PubsubSink};
use pubsub_source::{Endpoint, Message, PubsubSource};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{OUT, SUBSCRIPTION, Site};

pub(super) struct Host<'a> {
    site: &'a Site,
    source: PubsubSource,
    sink: PubsubSink<usize>,
    tick: Interval,
    epoch: Epoch,
    commits: FuturesUnordered<Receipt<Committed>>,
    /// The records of the messages, by their ids.
    handed_out: BTreeMap<String, usize>,
    /// Handed out before a commit that was asked for.
    covered: BTreeSet<String>,
}

impl<'a> Host<'a> {
    pub(super) fn new(site: &'a Site, address: SocketAddr) -> Self {
        let endpoint = Endpoint::emulator(&address.to_string()).unwrap();
        let source = PubsubSource::builder(SUBSCRIPTION.parse().unwrap())
            .endpoint(endpoint.clone())
            .max_extension(Duration::from_secs(10))
            .build()
            .unwrap();
        let sink =
            PubsubSink::builder(|number: &usize| Ok(Some(PublishMessage::new(number.to_string()))))
                .topic(OUT.parse().unwrap())
                .endpoint(endpoint)
                .build()
                .unwrap();
        let mut tick = interval(Duration::from_secs(2));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            site,
            source,
            sink,
            tick,
            epoch: Epoch::default(),
            commits: FuturesUnordered::new(),
            handed_out: BTreeMap::new(),
            covered: BTreeSet::new(),
        }
    }

    /// Until so many messages are acknowledged, nothing is owed, and the world has no more for it.
    pub(super) async fn run(&mut self, count: usize, is_over: impl Fn() -> bool) {
        loop {
            tokio::select! {
                biased;
                Some(committed) = self.commits.next() => {
                    committed.unwrap();
                    if self.commits.is_empty() && self.site.acked().len() == count && is_over() {
                        return;
                    }
                }
                _ = self.tick.tick() => self.checkpoint().await,
                message = self.source.next() => {
                    self.hand_on(&message.expect("the stream goes on").unwrap()).await;
                }
            }
            self.check_nothing_is_early();
        }
    }

    async fn hand_on(&mut self, message: &Message) {
        let text = std::str::from_utf8(message.data()).unwrap();
        let number = text.parse().unwrap();
        self.handed_out.insert(message.id().to_owned(), number);
        self.sink.feed(number).await.unwrap();
    }

    async fn checkpoint(&mut self) {
        self.epoch = self.epoch.next();
        self.source.snapshot(self.epoch).await.unwrap();
        self.sink.snapshot(self.epoch).await.unwrap();
        let stored = self.site.stored();
        let mut records = self.handed_out.values();
        assert!(
            records.all(|record| stored.contains(record)),
            "sealed before it is stored"
        );
        self.covered = self.handed_out.keys().cloned().collect();
        self.commits.push(self.source.commit(self.epoch));
        self.commits.push(self.sink.commit(self.epoch));
    }

    fn check_nothing_is_early(&self) {
        assert!(
            self.site.acked().is_subset(&self.covered),
            "acknowledged before a commit"
        );
    }

    pub(super) async fn close(mut self) {
        self.sink.close().await.unwrap();
        self.source.close().await.unwrap();
    }
}
