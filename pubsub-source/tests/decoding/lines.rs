//! Messages of lines, a record each; and a host that keeps what it was handed out.

use std::collections::BTreeSet;

use connector_core::{BoxError, Checkpoint, Committed, Epoch, Restored};
use futures::StreamExt;
use gcp_emulator::pubsub::proto::PubsubMessage;
use pubsub_source::{
    Decode, Decoded, Message, SourceBuilder, SourceError, SourceState, decode::lazily,
};
use tokio::task::JoinHandle;

use crate::world::*;

/// The decoder of most tests: a record for each line, an error for a line `!`.
pub trait ToLines: Decode<Message, Record = String> + 'static {}

impl<D: Decode<Message, Record = String> + 'static> ToLines for D {}

pub fn to_lines() -> impl ToLines {
    lazily(|message: Message| {
        let text = std::str::from_utf8(message.data())?.to_owned();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        Ok(lines.into_iter().map(|line| match line.as_str() {
            "!" => Err(BoxError::from("a line is not one")),
            _ => Ok(line),
        }))
    })
}

impl World {
    /// Publishes one message with these lines, and answers its id.
    pub fn publish_lines(&self, lines: &[&str]) -> String {
        let message = PubsubMessage {
            data: lines.join("\n").into(),
            ..PubsubMessage::default()
        };
        let ids = self.emulator.publish(TOPIC, vec![message]).unwrap();
        ids.into_iter().next().unwrap()
    }
}

/// Takes the next record.
pub async fn record<D: Decode<Message>>(source: &mut Decoded<D>) -> D::Record {
    let next = tokio::time::timeout(LONG, source.next()).await;
    next.expect("a record comes")
        .expect("the stream goes on")
        .expect("the source lives")
}

/// Takes so many records.
pub async fn records<D: Decode<Message>>(source: &mut Decoded<D>, count: usize) -> Vec<D::Record> {
    let mut records = Vec::with_capacity(count);
    for _ in 0..count {
        records.push(record(source).await);
    }
    records
}

/// Everything that comes until nothing does for longer than any lease.
pub async fn everything<D: Decode<Message>>(source: &mut Decoded<D>) -> Vec<D::Record> {
    let mut records = Vec::new();
    while let Ok(next) = tokio::time::timeout(LONG / 2, source.next()).await {
        records.push(next.expect("the stream goes on").expect("the source lives"));
    }
    records
}

/// The source's error.
pub async fn error<D: Decode<Message>>(source: &mut Decoded<D>) -> SourceError {
    let next = tokio::time::timeout(LONG, source.next()).await;
    match next.expect("the source ends").expect("with an error") {
        Ok(_) => panic!("a record came"),
        Err(error) => error,
    }
}

pub async fn cut<C: Checkpoint<State = SourceState>>(source: &mut C, epoch: u64) -> SourceState {
    source.snapshot(Epoch::new(epoch)).await.unwrap()
}

pub async fn committed<C: Checkpoint>(source: &mut C, epoch: u64) -> Committed {
    let receipt = source.commit(Epoch::new(epoch));
    let verdict = tokio::time::timeout(LONG, receipt).await;
    verdict.expect("a commit resolves").unwrap()
}

/// A source of lines with a host that stages what it reads: what was read after the last durable
/// cut is gone with a crash.
pub struct Staging<D: Decode<Message>> {
    pub source: Decoded<D>,
    driver: JoinHandle<()>,
    pub staged: Vec<D::Record>,
}

/// What such a host made durable.
pub struct Saved<R> {
    pub restored: Restored<SourceState>,
    pub staged: Vec<R>,
}

impl<D: ToLines> Staging<D> {
    pub fn start(builder: SourceBuilder, decoder: D, saved: Option<Saved<String>>) -> Self {
        let (restored, staged) = match saved {
            Some(saved) => (Some(saved.restored), saved.staged),
            None => (None, Vec::new()),
        };
        let (source, driver) = builder.restore(restored).build_with_driver().unwrap();
        Self {
            source: source.decode(decoder),
            driver: tokio::spawn(driver),
            staged,
        }
    }

    pub async fn read(&mut self, count: usize) {
        let read = records(&mut self.source, count).await;
        self.staged.extend(read);
    }

    pub async fn read_everything(&mut self) {
        let read = everything(&mut self.source).await;
        self.staged.extend(read);
    }

    pub async fn save(&mut self, epoch: u64) -> Saved<String> {
        let state = cut(&mut self.source, epoch).await;
        Saved {
            restored: restored(epoch, &state),
            staged: self.staged.clone(),
        }
    }

    /// Ends as a killed process does.
    pub async fn crash(self, world: &World) {
        self.driver.abort();
        drop(self.driver.await);
        drop(self.source);
        world.emulator.drop_connections();
    }
}

/// Whether each line came exactly once.
pub fn assert_each_once(lines: &[String], expected: &[&str]) {
    let distinct: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(distinct, expected.iter().copied().collect(), "{lines:?}");
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
}
