//! What a record knows of its message, and the trace that it continues.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use gcp_emulator::pubsub::proto::PubsubMessage;
use pubsub_source::{
    Disposition,
    decode::{json, text, with_metadata},
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::{lines::*, listening::listen, world::*};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn with_attributes<const N: usize>(attributes: [(&str, &str); N]) -> PubsubMessage {
    let attributes = attributes.map(|(key, value)| (key.to_owned(), value.to_owned()));
    PubsubMessage {
        data: "7".into(),
        attributes: attributes.into(),
        ..PubsubMessage::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_keeps_what_its_message_came_with() {
    let world = World::new();
    let message = PubsubMessage {
        ordering_key: "key".into(),
        ..with_attributes([("k", "v")])
    };
    let ids = world.emulator.publish(TOPIC, vec![message]).unwrap();
    let mut source = world
        .source()
        .build()
        .unwrap()
        .decode(with_metadata(json::<u32>()));
    let record = record(&mut source).await;
    assert_eq!(record.record, 7);
    let metadata = &record.metadata;
    assert_eq!(metadata.id(), ids[0]);
    assert_eq!(metadata.attribute("k"), Some("v"));
    assert_eq!(metadata.attributes().len(), 1);
    assert_eq!(metadata.ordering_key(), Some("key"));
    assert_eq!(metadata.delivery_attempt(), None);
    assert_eq!(metadata.subscription().as_str(), SUBSCRIPTION);
    assert_ne!(metadata.subscription().as_str(), "s11", "a bare id is none");
    let published = metadata.publish_time().unwrap();
    let since = published.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(
        metadata.publish_millis().map(i128::from),
        i128::try_from(since.as_millis()).ok()
    );
    assert!(!format!("{record:?}").contains("\"v\""), "{record:?}");
    let settled = source
        .settle(metadata.delivery(), Disposition::Ack)
        .unwrap();
    assert_eq!(settled.await.unwrap().settled, 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_with_nothing_but_a_payload_has_no_key_and_no_attributes() {
    let world = World::new();
    world.publish([7]);
    let source = world.source().build().unwrap();
    let mut source = source.decode(with_metadata(text()));
    let record = record(&mut source).await.map(|text| text.len());
    assert_eq!(record.record, 1);
    assert!(record.metadata.attributes().is_empty());
    assert_eq!(record.metadata.ordering_key(), None);
    assert_eq!(record.metadata.trace_context(), None);
}

/// Keeps the fields of every span.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}").trim_matches('"').to_owned();
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("pubsub_source") && metadata.is_span()
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut spans = self.0.lock().unwrap();
        spans.push(BTreeMap::new());
        let number = spans.len();
        attributes.record(&mut Fields(&mut spans[number - 1]));
        Id::from_u64(u64::try_from(number).unwrap())
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let at = usize::try_from(id.into_u64()).unwrap() - 1;
        values.record(&mut Fields(&mut self.0.lock().unwrap()[at]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_span_continues_the_trace_that_the_message_was_published_in() {
    let spans = Spans::default();
    let _listening = listen(spans.clone());
    let world = World::new();
    let context = format!("00-{TRACE}-{SPAN}-01");
    let messages = [
        with_attributes([
            ("googclient_traceparent", context.as_str()),
            ("googclient_tracestate", "vendor=1"),
        ]),
        with_attributes([("googclient_traceparent", "00-what-ever-01")]),
    ];
    let ids = world.emulator.publish(TOPIC, messages.to_vec()).unwrap();
    let mut source = world.source().build().unwrap();

    let traced = next(&mut source).await;
    assert_eq!(traced.trace_context().unwrap().to_string(), context);
    assert_eq!(traced.trace_state(), Some("vendor=1"));
    let untraced = next(&mut source).await;
    assert_eq!(untraced.trace_context(), None, "malformed is none");
    assert_eq!(spans.0.lock().unwrap().len(), 0, "none unless asked for");

    drop(traced.span());
    let (metadata, _) = untraced.into_parts();
    drop(metadata.span());
    let spans = spans.0.lock().unwrap().clone();
    let [first, second] = &spans[..] else {
        panic!("{spans:?}")
    };
    assert_eq!(first["messaging.message.id"], ids[0]);
    assert_eq!(first["subscription"], SUBSCRIPTION);
    assert_eq!(first["trace_id"], TRACE);
    assert_eq!(first["parent_span_id"], SPAN);
    assert_eq!(first["sampled"], "true");
    assert_eq!(second["messaging.message.id"], ids[1]);
    assert!(!second.contains_key("trace_id"));
}
