//! What becomes of messages that cannot be decoded.

use std::{
    fmt::Debug,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use connector_core::{Checkpoint, CheckpointError, Epoch};
use futures::{FutureExt, StreamExt};
use gcp_emulator::pubsub::proto::{DeadLetterPolicy, Subscription};
use pubsub_source::{DecodeFailure, Message, OnDrop, SourceError};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::{lines::*, listening::listen, world::*};

const SECOND: Duration = Duration::from_secs(1);
const DEAD: &str = "projects/demo-project/topics/dead";

/// Keeps the source's warnings, a line each.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("pubsub_source") && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Warnings {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn by_default_a_bad_message_ends_the_source_and_stays_unacknowledged() {
    let world = World::new();
    world.publish_lines(&["good"]);
    let id = world.publish_lines(&["!", "secret"]);
    world.publish_lines(&["never seen"]);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(1).await;
    let failed = error(&mut host.source).await;
    let text = failed.to_string();
    for part in [id.as_str(), SUBSCRIPTION, "DecodeFailure::Drop", "::Nack"] {
        assert!(text.contains(part), "{part} in: {text}");
    }
    let whole = format!("{failed:?}");
    assert!(whole.contains("a line is not one") && !whole.contains("secret"));
    assert!(host.source.next().await.is_none(), "the last word");
    let closed = host.source.snapshot(Epoch::new(1)).await;
    assert!(matches!(closed, Err(CheckpointError::Closed { .. })));

    assert_eq!(world.acked(), 0);
    // Given back, and not left until its lease ends.
    let mut other = world.source().build().unwrap();
    let again = tokio::time::timeout(SECOND * 5, read_texts(&mut other, 3)).await;
    assert_eq!(again.unwrap(), ["!\nsecret", "good", "never seen"]);
}

#[tokio::test(start_paused = true)]
async fn records_before_the_fault_come_out_before_the_error_does() {
    let world = World::new();
    world.publish_lines(&["a", "b", "!", "c"]);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(2).await;
    let saved = host.save(1).await;
    let failed = error(&mut host.source).await;
    assert!(
        matches!(failed, SourceError::Decode { records: 2, .. }),
        "{failed:?}"
    );
    host.crash(&world).await;

    // With a corrected decoder it goes on behind them.
    let corrected = |message: Message| {
        let text = String::from_utf8(message.data().to_vec())?;
        Ok(text.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    let mut host = Staging::start(world.source(), corrected, Some(saved));
    host.read_everything().await;
    assert_eq!(host.staged, ["a", "b", "!", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_fault_behind_the_last_record_that_was_read_is_told_by_close() {
    let world = World::new();
    let id = world.publish_lines(&["a", "!", "c"]);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(1).await;
    // It is known by now, and a cut still comes before it.
    let saved = host.save(1).await;
    assert_eq!(saved.restored.state.unfinished(), 1);
    let closed = host.source.close().await;
    assert!(
        matches!(&closed, Err(SourceError::Decode { message, records: 1, .. }) if *message == id),
        "{closed:?}"
    );
    host.source.close().await.unwrap();
    assert!(host.source.next().await.is_none(), "told once");
    assert_eq!(world.acked(), 0);
    let mut other = world.source().build().unwrap();
    let again = tokio::time::timeout(SECOND * 5, read_texts(&mut other, 1)).await;
    assert_eq!(again.unwrap(), ["a\n!\nc"]);
}

#[tokio::test(start_paused = true)]
async fn a_fault_behind_the_last_record_that_was_read_is_in_the_log_when_the_source_is_dropped() {
    for read in [false, true] {
        let warnings = Warnings::default();
        let _listening = listen(warnings.clone());
        let world = World::new();
        let id = world.publish_lines(&["a", "!", "c"]);
        let mut host = Staging::start(world.source(), to_lines(), None);
        host.read(1).await;
        if read {
            error(&mut host.source).await;
        }
        drop(host.source);
        let lines = warnings.lines();
        let told = lines
            .iter()
            .filter(|line| line.contains("before its host read the error") && line.contains(&id));
        assert_eq!(told.count(), usize::from(!read), "{lines:?}");
        assert_eq!(world.acked(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_message_is_acknowledged_with_its_epoch_and_not_before() {
    let world = World::new();
    for lines in [["first"], ["!"], ["third"]] {
        world.publish_lines(&lines);
    }
    // A slot for each: none may be taken for good.
    let builder = world
        .source()
        .outstanding(3)
        .first_outstanding(3)
        .decode_failure(DecodeFailure::Drop);
    let mut host = Staging::start(builder, to_lines(), None);
    host.read(2).await;
    assert_eq!(host.staged, ["first", "third"]);
    cut(&mut host.source, 1).await;
    tokio::time::sleep(SECOND * 5).await;
    assert_eq!(world.acked(), 0);
    assert_eq!(committed(&mut host.source, 1).await.settled, 3);
    let stats = host.source.stats();
    assert_eq!((stats.decode_failures, stats.decode_dropped), (1, 1));
    assert_eq!((stats.without_records, stats.leased), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_message_frees_the_only_slot_with_its_epoch() {
    let world = World::new();
    for lines in [["!"], ["third"]] {
        world.publish_lines(&lines);
    }
    let builder = world
        .source()
        .outstanding(1)
        .first_outstanding(1)
        .decode_failure(DecodeFailure::Drop);
    let mut host = Staging::start(builder, to_lines(), None);
    let early = tokio::time::timeout(SECOND * 5, host.read(1)).await;
    assert!(early.is_err(), "the slot is taken: {:?}", host.staged);
    assert_eq!(host.source.stats().decode_dropped, 1);
    cut(&mut host.source, 1).await;
    assert_eq!(committed(&mut host.source, 1).await.settled, 1);
    host.read(1).await;
    assert_eq!(host.staged, ["third"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_dropped_in_the_middle_belongs_to_the_epoch_of_its_last_good_record() {
    let world = World::new();
    world.publish_lines(&["a", "b", "!", "c"]);
    let builder = world.source().decode_failure(DecodeFailure::Drop);
    let mut host = Staging::start(builder, to_lines(), None);
    host.read(1).await;
    cut(&mut host.source, 1).await;
    assert_eq!(committed(&mut host.source, 1).await.settled, 0);
    host.read(1).await;
    cut(&mut host.source, 2).await;
    assert_eq!(committed(&mut host.source, 2).await.settled, 1);
    host.read_everything().await;
    assert_eq!(host.staged, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_dropped_messages_are_twenty_lines_in_the_log() {
    let warnings = Warnings::default();
    let _listening = listen(warnings.clone());
    let world = World::new();
    world.publish(0..10_000);
    world.publish_lines(&["good"]);
    let bad = |message: Message| match message.data().as_ref() {
        b"good" => Ok(["good"]),
        _ => Err("not good, said the decoder".into()),
    };
    let builder = world
        .source()
        .first_outstanding(100_000)
        .decode_failure(DecodeFailure::Drop);
    let mut source = builder.build().unwrap().decode(bad);
    record(&mut source).await;
    cut(&mut source, 1).await;
    assert_eq!(committed(&mut source, 1).await.settled, 10_001);
    let lines = warnings.lines();
    assert_eq!(lines.len(), 20, "{lines:?}");
    for line in &lines {
        assert!(
            line.contains("message=\"") && line.contains("dropped"),
            "{line}"
        );
        assert!(line.contains("said the decoder"), "{line}");
    }
    assert_eq!(source.stats().decode_dropped, 10_000);
}

#[tokio::test(start_paused = true)]
async fn a_nacked_message_goes_to_the_dead_letters_and_repeats_no_record() {
    let warnings = Warnings::default();
    let _listening = listen(warnings.clone());
    let world = with_dead_letters();
    world.publish_lines(&["a", "b", "!", "c"]);
    world.publish_lines(&["after"]);
    let builder = world.source().decode_failure(DecodeFailure::Nack);
    let mut host = Staging::start(builder, to_lines(), None);
    host.read_everything().await;
    assert_each_once(&host.staged, &["a", "b", "after"]);
    assert_eq!(world.emulator.observe().topic(DEAD).published, 1);
    let stats = host.source.stats();
    assert_eq!((stats.decode_failures, stats.decode_nacked), (5, 5));
    assert_eq!(stats.skipped_records, 4 * 2);
    cut(&mut host.source, 1).await;
    assert_eq!(committed(&mut host.source, 1).await.settled, 1);
    assert_eq!(host.source.stats().leased, 0);
    let lines = warnings.lines();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert!(lines[4].contains("attempt=5") && lines[4].contains("records=2"));
}

/// What becomes of leases when a source ends is another question.
#[tokio::test(start_paused = true)]
async fn a_nacked_message_is_given_back_at_once_whatever_a_source_does_when_it_ends() {
    for choice in [OnDrop::Lapse, OnDrop::ReleaseAfter(SECOND * 600)] {
        let world = with_dead_letters();
        world.publish_lines(&["!"]);
        let builder = world.source().decode_failure(DecodeFailure::Nack);
        let mut source = builder.on_drop(choice).build().unwrap().decode(to_lines());
        let nothing = tokio::time::timeout(SECOND * 10, source.next()).await;
        assert!(nothing.is_err(), "{nothing:?}");
        let dead = world.emulator.observe().topic(DEAD).published;
        assert_eq!((dead, source.stats().decode_nacked), (1, 5), "{choice:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_decoder_is_the_hosts_and_acknowledges_nothing() {
    let world = World::new();
    let id = world.publish_lines(&["a", "b", "c"]);
    let panics = |message: Message| {
        let text = String::from_utf8(message.data().to_vec())?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        Ok(lines
            .into_iter()
            .inspect(|line| assert_ne!(line, "c", "no c")))
    };
    let mut source = world.source().build().unwrap().decode(panics);
    assert_eq!(record(&mut source).await, "a");
    let panic = AssertUnwindSafe(source.next()).catch_unwind().await;
    assert!(panic.is_err(), "the host's task sees it");
    // "b" was about to come out and did not.
    let state = cut(&mut source, 1).await;
    assert_eq!((state.named(), state.unfinished()), (0, 1));
    let failed = error(&mut source).await;
    assert!(
        matches!(&failed, SourceError::DecoderPanicked { message, .. } if *message == id),
        "{failed:?}"
    );
    assert!(source.next().await.is_none());
    drop(source);

    let restored = restored(1, &state);
    let source = world.source().restore([restored]).build().unwrap();
    let mut source = source.decode(to_lines());
    assert_eq!(everything(&mut source).await, ["b", "c"]);
    assert_eq!(world.acked(), 0);
}

/// A world whose subscription gives a message up after five attempts.
fn with_dead_letters() -> World {
    let world = World::new();
    world.emulator.create_topic(DEAD).unwrap();
    world.emulator.delete_subscription(SUBSCRIPTION).unwrap();
    let with_policy = |settings: &mut Subscription| {
        settings.dead_letter_policy = Some(DeadLetterPolicy {
            dead_letter_topic: DEAD.to_owned(),
            max_delivery_attempts: 5,
        });
    };
    let created = world
        .emulator
        .create_subscription(SUBSCRIPTION, TOPIC, with_policy);
    created.unwrap();
    world
}

async fn read_texts(source: &mut pubsub_source::PubsubSource, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(String::from_utf8(next(source).await.into_data().to_vec()).unwrap());
    }
    texts.sort();
    texts
}
