//! What batching costs: from a record to its place in an encoded request, and to its verdict.

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pubsub_sink::{PublishMessage, TopicName, rehearsal::Rehearsal};

const RECORDS: usize = 10_000;

fn topics(count: usize) -> Vec<TopicName> {
    let name = |number| format!("projects/demo-project/topics/bench-{number}");
    (0..count)
        .map(|number| name(number).parse().expect("a topic's name"))
        .collect()
}

/// Records to so many topics in turn, all of them stored.
fn publish(sink: &mut Rehearsal, topics: &[TopicName], message: &PublishMessage) {
    for topic in topics.iter().cycle().take(RECORDS) {
        assert!(sink.accept(topic, message));
    }
    sink.store();
}

fn batching(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sink/batch");
    group.throughput(Throughput::Elements(RECORDS as u64));
    for (payload, batch, destinations) in [
        (16, 1000, 1),
        (1024, 1000, 1),
        (1024, 100, 1),
        (1024, 100, 1000),
    ] {
        let message = PublishMessage::new(Bytes::from(vec![b'x'; payload]));
        let topics = topics(destinations);
        let name = format!("{payload}-bytes/{batch}-a-batch/{destinations}-topics");
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            let mut sink = Rehearsal::new(batch, 10);
            bencher.iter(|| publish(&mut sink, &topics, &message));
        });
        let mut sink = Rehearsal::new(batch, 10);
        publish(&mut sink, &topics, &message);
        assert_eq!(sink.published(), RECORDS as u64);
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = batching
}
criterion_main!(benches);
