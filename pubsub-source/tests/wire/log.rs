//! What a source writes into its log.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Keeps the events of the source at INFO or above, a line each.
#[derive(Clone, Default)]
pub struct Loud(Arc<Mutex<Vec<String>>>);

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
    pub fn count(&self) -> usize {
        self.lines().len()
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// The lines that say this.
    pub fn matching(&self, what: &str) -> Vec<String> {
        let mut lines = self.lines();
        lines.retain(|line| line.contains(what));
        lines
    }

    /// The line that says this, which is the only one to.
    pub fn only(&self, what: &str) -> String {
        let [line] = <[String; 1]>::try_from(self.matching(what))
            .unwrap_or_else(|others| panic!("{what:?} in {others:?} of {:?}", self.lines()));
        line
    }
}
