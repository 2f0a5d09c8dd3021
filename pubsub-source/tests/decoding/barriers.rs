//! Cuts that travel with the records, through a channel and a buffer of the host.

use std::{collections::BTreeSet, pin::pin, time::Duration};

use connector_core::{
    Checkpoint, Epoch, Receipt, Restored,
    host::{BarrierExt, Event},
};
use futures::{Stream, StreamExt, stream};
use pubsub_source::{Message, SourceError, SourceState, every};
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{lines::*, world::*};

const TEN: Duration = Duration::from_secs(10);

/// Several times while the messages are worked on, which takes about two seconds.
const OFTEN: Duration = Duration::from_millis(150);

/// What the host made durable: the newest state, and what its staged sink had by then.
#[derive(Default)]
struct Durable {
    restored: Option<Restored<SourceState>>,
    sink: Vec<String>,
}

/// Reads through a channel and `buffered(8)`, with work of uneven length in between, until `records`
/// have come out or nothing does any more. What came out after the last barrier is lost then.
async fn run<S, M>(
    source: S,
    driver: JoinHandle<()>,
    durable: &mut Durable,
    text: fn(M) -> String,
    records: usize,
) where
    S: Stream<Item = Result<M, SourceError>>
        + Checkpoint<State = SourceState>
        + Send
        + Unpin
        + 'static,
    M: Send + 'static,
{
    let mut epoch = durable
        .restored
        .as_ref()
        .map_or(Epoch::default(), |restored| restored.epoch);
    let next_epoch = move || {
        epoch = epoch.next();
        epoch
    };
    let mut barriers = source.with_barriers(every(OFTEN), next_epoch);
    let checkpoints = barriers.checkpoints();
    let (sender, mut receiver) = mpsc::channel(8);
    let pump = tokio::spawn(async move {
        while let Some(event) = barriers.next().await {
            if sender.send(event.unwrap()).await.is_err() {
                return;
            }
        }
    });
    let received = stream::poll_fn(|cx| receiver.poll_recv(cx));
    let mut work = 0;
    let worked = received.map(|event: Event<M, SourceState>| {
        work = (work + 7) % 10;
        let work = Duration::from_millis(10 * work);
        async move {
            tokio::time::sleep(work).await;
            event
        }
    });
    let mut events = pin!(worked.buffered(8));
    let mut sink = durable.sink.clone();
    let mut read = 0;
    while read < records
        && let Ok(event) = tokio::time::timeout(LONG / 9, events.next()).await
    {
        match event.unwrap() {
            Event::Record(record) => {
                sink.push(text(record));
                read += 1;
            }
            Event::Barrier(epoch, state) => {
                let state: Receipt<SourceState> = state;
                durable.restored = Some(restored(epoch.get(), &state.await.unwrap()));
                durable.sink.clone_from(&sink);
                drop(checkpoints.commit(epoch));
                // Idle barriers come for ever.
                if sink.len() >= 300 && read > 0 && records == usize::MAX {
                    break;
                }
            }
        }
    }
    // Records sit in the source's buffer, the channel and among the workers.
    pump.abort();
    driver.abort();
    drop(driver.await);
    drop(pump.await);
}

/// Some of the crashes came after a cut and in the middle of things.
fn assert_in_the_middle(saved: &[usize]) {
    let middle = saved.iter().filter(|saved| (1..300).contains(*saved));
    assert!(middle.count() >= 2, "{saved:?}");
}

fn assert_all(sink: &[String], expected: impl Iterator<Item = String>) {
    let expected: BTreeSet<String> = expected.collect();
    let found: BTreeSet<String> = sink.iter().cloned().collect();
    assert_eq!(found, expected);
    assert_eq!(sink.len(), expected.len(), "each once");
}

#[tokio::test(start_paused = true)]
async fn a_crash_behind_a_channel_and_a_buffer_loses_and_repeats_no_message() {
    let world = World::new();
    world.publish(0..300);
    let (mut durable, mut saved) = (Durable::default(), Vec::new());
    let text = |message: Message| number(&message).to_string();
    for records in [5, 130, 1, 90, usize::MAX] {
        let builder = world.source().restore(durable.restored.clone());
        let (source, driver) = builder.build_with_driver().unwrap();
        run(source, tokio::spawn(driver), &mut durable, text, records).await;
        saved.push(durable.sink.len());
        world.emulator.drop_connections();
    }
    assert_in_the_middle(&saved);
    assert_all(&durable.sink, (0..300).map(|number| number.to_string()));
}

#[tokio::test(start_paused = true)]
async fn a_crash_behind_a_channel_and_a_buffer_loses_and_repeats_no_record() {
    let world = World::new();
    for message in 0..100 {
        let lines = [0, 1, 2].map(|line| format!("{message}.{line}"));
        world.publish_lines(&lines.each_ref().map(String::as_str));
    }
    let (mut durable, mut saved) = (Durable::default(), Vec::new());
    for records in [5, 130, 1, 90, usize::MAX] {
        let builder = world.source().restore(durable.restored.clone());
        let (source, driver) = builder.build_with_driver().unwrap();
        let source = source.decode(to_lines());
        let driver = tokio::spawn(driver);
        run(source, driver, &mut durable, |line| line, records).await;
        saved.push(durable.sink.len());
        world.emulator.drop_connections();
    }
    let lines = (0..100).flat_map(|message| [0, 1, 2].map(|line| format!("{message}.{line}")));
    assert_in_the_middle(&saved);
    assert_all(&durable.sink, lines);
}

#[tokio::test(start_paused = true)]
async fn barriers_come_every_period_and_the_source_can_be_closed_behind_them() {
    let world = World::new();
    world.publish(0..3);
    let mut epoch = Epoch::default();
    let next_epoch = move || {
        epoch = epoch.next();
        epoch
    };
    let began = tokio::time::Instant::now();
    let mut events = world
        .source()
        .build()
        .unwrap()
        .with_barriers(every(TEN), next_epoch);
    let checkpoints = events.checkpoints();
    let mut barriers = 0;
    while barriers < 3 {
        if let Event::Barrier(epoch, _) = events.next().await.unwrap().unwrap() {
            barriers += 1;
            assert_eq!(epoch.get(), barriers);
            let since = began.elapsed();
            let due = TEN * u32::try_from(barriers).unwrap();
            assert!(since >= due && since < due + TEN / 10, "{since:?}");
            let settled = checkpoints.commit(epoch).await.unwrap().settled;
            assert_eq!(settled, if barriers == 1 { 3 } else { 0 });
        }
    }
    drop(events);
    let mut source = checkpoints.into_source().expect("nothing else has it");
    source.close().await.unwrap();
}
