//! The spans around publish requests.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use futures::SinkExt;
use gcp_emulator::{Code, Fault, Method, Rule};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::world::{World, full, record};

/// Keeps the spans of the sink: name and fields, as text.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("pubsub_sink")
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut text = span.metadata().name().to_owned();
        span.record(&mut Text(&mut text));
        let mut seen = self.0.lock().unwrap();
        seen.push(text);
        span::Id::from_u64(seen.len() as u64)
    }

    fn record(&self, span: &span::Id, values: &span::Record<'_>) {
        let at = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut Text(&mut self.0.lock().unwrap()[at]));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn every_publish_request_has_a_span_with_its_topic_its_size_and_its_outcome() {
    let world = World::new(&["events"]);
    let unavailable = Fault::answer(Code::Unavailable, "not now");
    world.fault(Rule::on(Method::Publish).once().then(unavailable));
    let spans = Spans::default();
    let _kept = crate::listening::listen(spans.clone());
    let mut sink = world.builder().instance("orders").build().unwrap();
    sink.feed(record("events", "x")).await.unwrap();
    sink.close().await.unwrap();
    let bytes = world.requests()[0].1;
    let expected = ["UNAVAILABLE", "OK"].map(|code| {
        let topic = full("events");
        format!("publish instance=\"orders\" topic={topic} bytes={bytes} code=\"{code}\"")
    });
    assert_eq!(*spans.0.lock().unwrap(), expected);
}
