//! What the sink and the wire tell the log.

use std::sync::{Arc, Mutex};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Collects the lines of this family's crates, at DEBUG and above.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Log {
    /// Collects on this thread until the guard is dropped.
    pub(crate) fn collect() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let guard = crate::listening::listen(log.clone());
        (log, guard)
    }

    pub(crate) fn lines(&self, at_least: Level) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines
            .iter()
            .filter(|(level, _)| *level <= at_least)
            .map(|(_, line)| line.clone())
            .collect()
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = ["pubsub_sink", "gcp_wire", "connector_core"]
            .iter()
            .any(|name| metadata.target().starts_with(name));
        ours && *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0
            .lock()
            .unwrap()
            .push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
