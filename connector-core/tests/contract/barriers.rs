//! Barriers that travel with the records.

use std::{sync::Arc, task::Poll};

use connector_core::{
    Epoch,
    host::{BarrierExt, Event},
};
use futures::{FutureExt, Stream, StreamExt, stream};

use crate::reference::{
    crew::Drive, pull_service::PullService, source::FakeSource, source::SourceEnded,
};

fn service(numbers: std::ops::RangeInclusive<u64>) -> PullService {
    let service = PullService::default();
    for number in numbers {
        service.publish(vec![number]);
    }
    service
}

/// A tick after every `every` looks at it.
fn ticks(every: usize) -> impl Stream<Item = ()> {
    let mut looks = 0;
    stream::poll_fn(move |_| {
        looks += 1;
        if looks % (every + 1) == 0 {
            Poll::Ready(Some(()))
        } else {
            Poll::Pending
        }
    })
}

fn epochs() -> impl FnMut() -> Epoch {
    let mut epoch = Epoch::default();
    move || {
        epoch = epoch.next();
        epoch
    }
}

fn take<S: Stream + Unpin>(stream: &mut S) -> S::Item {
    let item = stream.next().now_or_never().expect("something is there");
    item.expect("the stream goes on")
}

#[test]
fn a_barrier_keeps_its_place_behind_a_buffer_of_the_host() {
    let service = service(1..=10);
    service.finish();
    let source = FakeSource::new(&service, None, Vec::new());
    let core = Arc::clone(source.core());
    let barriers = source.with_barriers(ticks(3), epochs());
    let checkpoints = barriers.checkpoints();
    // Eight items are pulled out of the source before the host sees the first one.
    let mut events = barriers.map(std::future::ready).buffered(8);

    let mut before = Vec::new();
    let mut cuts = 0;
    while let Some(event) = events.next().now_or_never().expect("never waits") {
        match event.unwrap() {
            Event::Record(number) => before.push(number),
            Event::Barrier(epoch, mut receipt) => {
                assert!(matches!(receipt.try_now(), Some(Ok(_))));
                let mut committed = checkpoints.commit(epoch);
                core.lock().unwrap().drive();
                assert!(matches!(committed.try_now(), Some(Ok(_))));
                assert_eq!(
                    service.acknowledged(),
                    before,
                    "epoch {epoch} covers what came before its barrier, and nothing else"
                );
                cuts += 1;
            }
        }
    }
    assert_eq!(before, (1..=10).collect::<Vec<_>>());
    assert_eq!(
        cuts, 4,
        "one after every three records, and the last one at the end"
    );
}

#[test]
fn an_aborted_barrier_leaves_its_records_to_the_next() {
    let service = service(1..=2);
    let source = FakeSource::new(&service, None, Vec::new());
    let core = Arc::clone(source.core());
    let mut events = source.with_barriers(ticks(1), epochs());
    let checkpoints = events.checkpoints();
    assert!(matches!(take(&mut events), Ok(Event::Record(1))));
    let Ok(Event::Barrier(first, _)) = take(&mut events) else {
        panic!("a barrier after the first record");
    };
    checkpoints.abort(first);
    assert!(matches!(take(&mut events), Ok(Event::Record(2))));
    let Ok(Event::Barrier(second, _)) = take(&mut events) else {
        panic!("a barrier after the second record");
    };
    drop(checkpoints.commit(first));
    core.lock().unwrap().drive();
    assert_eq!(service.acknowledged(), Vec::<u64>::new());
    drop(checkpoints.commit(second));
    core.lock().unwrap().drive();
    assert_eq!(service.acknowledged(), [1, 2]);
}

#[test]
fn no_barrier_vouches_for_anything_after_an_error() {
    let service = service(1..=1);
    let source = FakeSource::new(&service, None, Vec::new());
    let mut events = source.with_barriers(ticks(2), epochs());
    assert!(matches!(take(&mut events), Ok(Event::Record(1))));
    service.set_broken(true);
    assert!(matches!(take(&mut events), Err(SourceEnded { .. })));
    let end = events.next().now_or_never();
    assert!(matches!(end, Some(None)), "{end:?}");
    let end = events.next().now_or_never();
    assert!(
        matches!(end, Some(None)),
        "a stream that ended stays ended: {end:?}"
    );
}

#[test]
fn the_source_comes_back_when_nothing_else_has_it() {
    let service = service(1..=1);
    let source = FakeSource::new(&service, None, Vec::new());
    let mut events = source.with_barriers(stream::empty::<()>(), epochs());
    let checkpoints = events.checkpoints();
    assert!(matches!(take(&mut events), Ok(Event::Record(1))));
    let Err(checkpoints) = checkpoints.into_source() else {
        panic!("the stream has it");
    };
    drop(events);
    let Ok(source) = checkpoints.into_source() else {
        panic!("nothing else has it");
    };
    source.close();
}

#[test]
fn without_ticks_the_only_barrier_is_the_last() {
    let service = service(1..=2);
    service.finish();
    let source = FakeSource::new(&service, None, Vec::new());
    let events = source.with_barriers(stream::empty::<()>(), epochs());
    let events: Vec<_> = events
        .map(
            |event| match event.unwrap().map_record(|number| number * 10) {
                Event::Record(number) => number,
                Event::Barrier(epoch, _) => epoch.get(),
            },
        )
        .collect()
        .now_or_never()
        .expect("never waits");
    assert_eq!(events, [10, 20, 1]);
}
