//! What the epoch ledger costs per item, and per snapshot.

use std::hint::black_box;

use connector_core::{
    Epoch,
    ledger::{Ledger, Outcome, Place},
};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const SIZES: [u64; 2] = [1_000, 100_000];

fn fill(ledger: &mut Ledger<u64>, items: u64) -> Vec<Place> {
    (0..items).map(|item| ledger.add(item)).collect()
}

/// One epoch from its first item to its last verdict.
fn turn(ledger: &mut Ledger<u64>, epoch: Epoch, items: u64) {
    let places = fill(ledger, items);
    ledger.seal(epoch).expect("epochs ascend");
    black_box(ledger.view().len());
    black_box(ledger.commit(epoch).expect("sealed above").released.len());
    for place in places {
        ledger.settle(place, Outcome::Settled);
    }
    while let Some(committed) = ledger.poll_committed() {
        black_box(committed);
    }
}

fn steady(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ledger/steady");
    for items in SIZES {
        group.throughput(Throughput::Elements(items));
        group.bench_with_input(
            BenchmarkId::from_parameter(items),
            &items,
            |bencher, &items| {
                let mut ledger = Ledger::new();
                let mut epoch = Epoch::default();
                bencher.iter(|| {
                    epoch = epoch.next();
                    turn(&mut ledger, epoch, items);
                });
            },
        );
    }
    group.finish();
}

fn held(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ledger/held");
    for items in SIZES {
        group.throughput(Throughput::Elements(items));
        group.bench_with_input(
            BenchmarkId::from_parameter(items),
            &items,
            |bencher, &items| {
                // A ledger of its own for each: behind epochs that never settle, committed ones
                // only add up.
                bencher.iter_batched_ref(
                    || holding(10, items),
                    |(ledger, epoch)| turn(ledger, epoch.next(), items),
                    BatchSize::LargeInput,
                );
            },
        );
    }
    group.finish();
}

/// A ledger of so many committed epochs whose items have no verdict, and the last of them.
fn holding(epochs: u64, items: u64) -> (Ledger<u64>, Epoch) {
    let mut ledger = Ledger::new();
    let mut epoch = Epoch::default();
    for _ in 0..epochs {
        epoch = epoch.next();
        fill(&mut ledger, items);
        ledger.seal(epoch).expect("epochs ascend");
        ledger.commit(epoch).expect("sealed above");
    }
    (ledger, epoch)
}

fn view(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ledger/view");
    for items in SIZES {
        group.bench_with_input(
            BenchmarkId::from_parameter(items),
            &items,
            |bencher, &items| {
                bencher.iter_batched_ref(
                    || {
                        let mut ledger = Ledger::new();
                        fill(&mut ledger, items);
                        ledger
                    },
                    |ledger| {
                        ledger.seal(Epoch::new(1)).expect("the first epoch");
                        black_box(ledger.view())
                    },
                    BatchSize::LargeInput,
                );
            },
        );
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = steady, held, view
}
criterion_main!(benches);
