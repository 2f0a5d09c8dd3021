//! The spans around calls.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cloudtasks_sink::Batch;
use gcp_emulator::{Code, Fault, Method, Rule};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::world::{Q1, World, orders, send};

/// Keeps the spans of the sink: name and fields, as text.
#[derive(Clone, Default)]
struct Spans {
    next: Arc<AtomicU64>,
    seen: Arc<Mutex<Vec<(u64, String)>>>,
}

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl Spans {
    fn all(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|(_, text)| text.clone()).collect()
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("cloudtasks_sink")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut text = span.metadata().name().to_owned();
        span.record(&mut Text(&mut text));
        self.seen.lock().unwrap().push((id, text));
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut seen = self.seen.lock().unwrap();
        if let Some((_, text)) = seen.iter_mut().find(|(id, _)| *id == span.into_u64()) {
            values.record(&mut Text(text));
        }
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn every_call_has_a_span_that_names_its_queue_and_its_outcome() {
    for (size, method, name) in [
        (None, Method::CreateTask, "create_task"),
        (
            Some(Batch::up_to(100)),
            Method::BatchCreateTasks,
            "create_batch",
        ),
    ] {
        let world = World::new();
        let unavailable = Fault::answer(Code::Unavailable, "not now");
        let rule = Rule::on(method).once().then(unavailable);
        world.emulator.faults().add(rule);
        let spans = Spans::default();
        let _kept = crate::listening::listen(spans.clone());
        let mut sink = world.sink().instance("orders");
        if let Some(size) = size {
            sink = sink.batching(size);
        }
        let mut sink = sink.build().unwrap();
        send(&mut sink, orders(0..1)).await.unwrap();
        let spans = spans.all();
        assert_eq!(spans.len(), 2, "{spans:?}");
        for (span, code) in spans.iter().zip(["UNAVAILABLE", "OK"]) {
            assert!(span.starts_with(name), "{span}");
            assert!(span.contains("instance=\"orders\""), "{span}");
            assert!(span.contains(&format!("queue=\"{Q1}\"")), "{span}");
            assert!(span.ends_with(&format!("code=\"{code}\"")), "{span}");
        }
    }
}
