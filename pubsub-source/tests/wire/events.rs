//! What a log says, and how often.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};

use gcp_emulator::{Code, Fault, Method, Rule};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

/// Keeps the events of the source at INFO or above, a line each.
#[derive(Clone, Default)]
struct Loud(Arc<Mutex<Vec<String>>>);

/// An event as a line.
#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

impl Subscriber for Loud {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("pubsub_source") && *metadata.level() <= Level::INFO
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

impl Loud {
    fn count(&self) -> usize {
        self.lines().len()
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn routine_closure_of_streams_is_not_worth_a_line() {
    let loud = Loud::default();
    let _listening = tracing::subscriber::set_default(loud.clone());
    let world = World::with(|server| server.response_messages(3), |_| {});
    world.emulator.faults().add(
        Rule::on(Method::StreamingPull)
            .times(50)
            .then(Fault::answer(Code::Unavailable, "closing").after_responses(1)),
    );
    world.publish(0..150);
    let mut source = world.source().build().unwrap();
    read(&mut source, 150).await;
    seal(&mut source, 1).await;
    commit(&mut source, 1).await;
    source.close().await.unwrap();
    assert_eq!(loud.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_told_and_does_not_flood_the_log() {
    let loud = Loud::default();
    let _listening = tracing::subscriber::set_default(loud.clone());
    let world = World::new();
    world.emulator.refuse_connections(true).await.unwrap();
    let mut source = world.source().streams(4).build().unwrap();
    nothing_for(&mut source, SECOND * 3).await;
    assert!(loud.count() < 20, "{} lines in 3 s", loud.count());
    nothing_for(&mut source, SECOND * 600).await;
    let lines = loud.count();
    assert!((4..=80).contains(&lines), "{lines} lines in 10 minutes");
    for line in loud.lines() {
        assert!(line.contains("endpoint=\"memory:\""), "{line}");
        assert!(line.contains("cannot be reached"), "{line}");
        assert!(line.contains("nothing is lost"), "{line}");
    }
}
