//! What the source's parts cost: decoding, taking in and handing out, settling, the lease queue.

use std::{hint::black_box, time::Duration};

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gcp_wire::{
    PulledResponse,
    proto::pubsub::{PubsubMessage, ReceivedMessage, StreamingPullResponse},
};
use prost::Message as _;
use pubsub_source::rehearsal::Rehearsal;

/// Messages of a response, as the service sends them under load.
const RESPONSE: usize = 100;

/// Deliveries held when they are settled or extended.
const HELD: usize = 100_000;

/// One response with ids like the service's: 176 characters, 16 digits.
fn response(first: usize, payload: usize) -> Bytes {
    let received = |number| ReceivedMessage {
        ack_id: format!("{number:0176}"),
        message: Some(PubsubMessage {
            data: vec![b'x'; payload].into(),
            message_id: format!("{number:016}"),
            publish_time: Some(gcp_wire::proto::Timestamp {
                seconds: 1_800_000_000,
                nanos: 0,
            }),
            ..Default::default()
        }),
        delivery_attempt: 0,
    };
    let response = StreamingPullResponse {
        received_messages: (first..first + RESPONSE).map(received).collect(),
        ..Default::default()
    };
    response.encode_to_vec().into()
}

fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("source/decode");
    group.throughput(Throughput::Elements(RESPONSE as u64));
    for payload in [16, 1024, 10_240] {
        let bytes = response(1, payload);
        group.bench_function(BenchmarkId::from_parameter(payload), |bencher| {
            bencher.iter(|| decode(bytes.clone()));
        });
    }
    group.finish();
}

fn decode(bytes: Bytes) {
    black_box(PulledResponse::decode(bytes).expect("encoded above"));
}

fn receiving(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("source/receive");
    group.throughput(Throughput::Elements(HELD as u64));
    for payload in [16, 1024] {
        let responses: Vec<Bytes> = responses(payload).collect();
        group.bench_function(BenchmarkId::from_parameter(payload), |bencher| {
            bencher.iter_batched_ref(
                || Rehearsal::new(2 * HELD),
                |source| {
                    for response in &responses {
                        black_box(source.receive(response.clone()));
                    }
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn responses(payload: usize) -> impl Iterator<Item = Bytes> {
    (0..HELD)
        .step_by(RESPONSE)
        .map(move |first| response(first, payload))
}

/// A source that holds what it was given.
fn holding() -> Rehearsal {
    let mut source = Rehearsal::new(2 * HELD);
    let received: usize = responses(16).map(|bytes| source.receive(bytes)).sum();
    assert_eq!(received, HELD);
    source
}

fn settling(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("source/settle");
    group.throughput(Throughput::Elements(HELD as u64));
    group.bench_function("checkpoint", |bencher| {
        bencher.iter_batched_ref(holding, Rehearsal::checkpoint, BatchSize::PerIteration);
    });
    let mut source = holding();
    source.checkpoint();
    assert_eq!(source.stats().acknowledged, HELD as u64);
    group.finish();
}

fn leases(criterion: &mut Criterion) {
    // Leases of 60 s: after so long each was extended once.
    let long = Duration::from_secs(60);
    let mut group = criterion.benchmark_group("source/lease");
    group.throughput(Throughput::Elements(HELD as u64));
    group.bench_function("extend", |bencher| {
        bencher.iter_batched_ref(holding, |source| source.wait(long), BatchSize::PerIteration);
    });
    let mut source = holding();
    source.wait(long);
    let stats = source.stats();
    assert_eq!((stats.extended, stats.lapsed), (HELD as u64, 0));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = decoding, receiving, settling, leases
}
criterion_main!(benches);
