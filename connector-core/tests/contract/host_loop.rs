//! The loop of a host, in virtual time.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use connector_core::{
    Checkpoint, Committed, Epoch, Next, Receipt, Restored,
    conformance::{FlakyHandler, Hold},
    host::StepError,
    next_when, settle,
};
use futures::{FutureExt, SinkExt, StreamExt, stream::FuturesUnordered};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use crate::reference::{
    crew::Drive,
    pull_service::PullService,
    push_service::PushService,
    sink::{FakeSink, Mode, Record, Setup, State as SinkState, drive_with},
    source::{FakeSource, State as SourceState},
};

/// A commit's sending takes this long.
const COMMIT: Duration = Duration::from_secs(30);

fn sink(service: &PushService, stage: usize, restored: Vec<Restored<SinkState>>) -> FakeSink {
    let setup = Setup {
        mode: Mode::Staged,
        bug: None,
        stage,
        incarnation: 1,
        handler: FlakyHandler::new(|_| 0),
    };
    FakeSink::new(service, setup, restored)
}

struct World {
    pull: PullService,
    left: PushService,
    right: PushService,
    source: FakeSource,
    sinks: (FakeSink, FakeSink),
    drivers: JoinSet<()>,
}

async fn drive_source<D: Drive>(driver: Arc<Mutex<D>>) {
    loop {
        sleep(Duration::from_secs(1)).await;
        driver.lock().unwrap().drive();
    }
}

impl World {
    fn new(records: u64, stages: (usize, usize)) -> Self {
        let pull = PullService::default();
        for number in 0..records {
            pull.publish(vec![number]);
        }
        let (left, right) = (PushService::default(), PushService::default());
        let source = FakeSource::new(&pull, None, Vec::new());
        let sinks = (
            sink(&left, stages.0, Vec::new()),
            sink(&right, stages.1, Vec::new()),
        );
        let mut drivers = JoinSet::new();
        drivers.spawn(drive_source(Arc::clone(source.core())));
        drivers.spawn(drive_with(Arc::clone(sinks.0.core()), COMMIT));
        drivers.spawn(drive_with(Arc::clone(sinks.1.core()), COMMIT));
        Self {
            pull,
            left,
            right,
            source,
            sinks,
            drivers,
        }
    }

    /// Both cuts, with no await in between.
    fn cut(&mut self, epoch: Epoch) -> Cut {
        Cut(
            self.source.snapshot(epoch),
            self.sinks.0.snapshot(epoch),
            self.sinks.1.snapshot(epoch),
        )
    }

    fn commit(&mut self, epoch: Epoch) -> [Receipt<Committed>; 3] {
        [
            self.sinks.0.commit(epoch),
            self.sinks.1.commit(epoch),
            self.source.commit(epoch),
        ]
    }
}

struct Cut(Receipt<SourceState>, Receipt<SinkState>, Receipt<SinkState>);

impl Cut {
    async fn save(self) {
        self.0.await.unwrap();
        self.1.await.unwrap();
        self.2.await.unwrap();
    }
}

/// The loop that hosts are told to write, until `records` have been read.
async fn run(world: &mut World, records: u64, tick: Duration) {
    let mut tick = interval(tick);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut commits = FuturesUnordered::new();
    let mut epoch = Epoch::default();
    let mut read = 0;
    while read < records {
        let cut = tokio::select! { biased;
            Some(done) = commits.next() => {
                let _: Epoch = Result::unwrap(done);
                false
            }
            _ = tick.tick() => true,
            step = next_when(&mut world.source, (&mut world.sinks.0, &mut world.sinks.1)) => {
                match step.unwrap() {
                    Next::Record(number) => {
                        world.sinks.0.start_send_unpin(Record::Good(number)).unwrap();
                        world.sinks.1.start_send_unpin(Record::Good(number)).unwrap();
                        read += 1;
                        false
                    }
                    Next::CheckpointWanted => true,
                    Next::End => panic!("the source does not end"),
                }
            }
        };
        if cut {
            epoch = epoch.next();
            world.cut(epoch).save().await;
            commits.push(settle(epoch, world.commit(epoch)));
        }
    }
    epoch = epoch.next();
    world.cut(epoch).save().await;
    commits.push(settle(epoch, world.commit(epoch)));
    while let Some(done) = commits.next().await {
        done.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_loop_never_stands_still_whatever_the_stage_and_the_tick() {
    const RECORDS: u64 = 250;
    for stages in [(1, 1), (1, 100), (100, 1), (100, 100)] {
        for tick in [Duration::from_secs(1), Duration::from_secs(600)] {
            let mut world = World::new(RECORDS, stages);
            // Every half stage of the smaller sink costs one checkpoint, and its commit one turn
            // of a driver, or two when the turn had begun. A loop that waited for its slow tick
            // would need ten times as long.
            let half = u64::try_from(stages.0.min(stages.1).div_ceil(2)).unwrap();
            let turns = u32::try_from(RECORDS.div_ceil(half) + 2).unwrap();
            let bound = COMMIT * 2 * turns;
            timeout(bound, run(&mut world, RECORDS, tick))
                .await
                .unwrap_or_else(|_| panic!("stages {stages:?} and tick {tick:?} stood still"));
            let all: Vec<u64> = (0..RECORDS).collect();
            assert_eq!(world.left.taken(), all, "{stages:?} {tick:?}");
            assert_eq!(world.right.taken(), all, "{stages:?} {tick:?}");
            assert_eq!(world.pull.acknowledged(), all, "{stages:?} {tick:?}");
            world.drivers.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn reading_goes_on_while_a_commit_is_under_way() {
    let mut world = World::new(60, (1000, 1000));
    let reading = run(&mut world, 60, Duration::from_secs(1));
    // Two turns of the drivers: the commit of the tick at the start, and the last one.
    timeout(COMMIT * 2 + Duration::from_secs(2), reading)
        .await
        .expect("a loop that awaits its commits takes a turn per checkpoint");
    assert_eq!(world.left.taken().len(), 60);
}

#[test]
fn dropping_next_when_between_its_polls_loses_nothing() {
    let pull = PullService::default();
    for number in 0..50 {
        pull.publish(vec![number]);
    }
    let mut source = FakeSource::new(&pull, None, Vec::new());
    let service = PushService::default();
    let mut sink = sink(&service, 3, Vec::new());
    let mut epoch = Epoch::default();
    let mut read = Vec::new();
    let mut waited = 0;
    while read.len() < 50 {
        // One poll, then the future is gone, as when another branch of a `select!` wins.
        let step = pin!(next_when(&mut source, &mut sink))
            .poll_unpin(&mut Context::from_waker(Waker::noop()));
        match step {
            Poll::Ready(Ok(Next::Record(number))) => {
                sink.start_send_unpin(Record::Good(number)).unwrap();
                read.push(number);
            }
            Poll::Ready(Ok(Next::CheckpointWanted)) => {
                epoch = epoch.next();
                drop(sink.snapshot(epoch));
                drop(sink.commit(epoch));
            }
            Poll::Pending => {
                waited += 1;
                sink.core().lock().unwrap().drive();
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(read, (0..50).collect::<Vec<_>>());
    assert!(waited > 0, "the sink was full at times");
}

#[test]
fn a_message_stays_in_the_source_while_any_sink_is_full() {
    let pull = PullService::default();
    pull.publish(vec![1]);
    let mut source = FakeSource::new(&pull, None, Vec::new());
    let (left, right) = (PushService::default(), PushService::default());
    let (mut roomy, mut full) = (sink(&left, 10, Vec::new()), sink(&right, 1, Vec::new()));
    full.start_send_unpin(Record::Good(0)).unwrap();
    drop(full.snapshot(Epoch::new(1)));
    right.hold(Hold::Everything);
    drop(full.commit(Epoch::new(1)));
    assert!(
        next_when(&mut source, (&mut roomy, &mut full))
            .now_or_never()
            .is_none()
    );
    right.hold(Hold::Nothing);
    full.core().lock().unwrap().drive();
    let step = next_when(&mut source, (&mut roomy, &mut full)).now_or_never();
    assert!(matches!(step, Some(Ok(Next::Record(1)))), "{step:?}");
}

#[test]
fn the_connector_that_ended_is_named() {
    let pull = PullService::default();
    let mut source = FakeSource::new(&pull, None, Vec::new());
    let (left, right) = (PushService::default(), PushService::default());
    let mut sinks = (sink(&left, 10, Vec::new()), sink(&right, 10, Vec::new()));
    right.set_broken(true);
    assert!(
        sinks
            .1
            .flush()
            .now_or_never()
            .is_some_and(|flushed| flushed.is_err())
    );
    let step = next_when(&mut source, (&mut sinks.0, &mut sinks.1)).now_or_never();
    assert!(
        matches!(step, Some(Err(StepError::Sink { index: 1, .. }))),
        "{step:?}"
    );
    pull.set_broken(true);
    let step = next_when(&mut source, &mut sinks.0).now_or_never();
    assert!(
        matches!(step, Some(Err(StepError::Source { .. }))),
        "{step:?}"
    );
    let end = next_when(&mut source, &mut sinks.0).now_or_never();
    assert!(matches!(end, Some(Ok(Next::End))), "{end:?}");
}

#[test]
fn a_sink_that_ends_while_the_source_is_idle_wakes_the_loop() {
    #[derive(Default)]
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    for ending in [0, 1] {
        let pull = PullService::default();
        let mut source = FakeSource::new(&pull, None, Vec::new());
        let services = [PushService::default(), PushService::default()];
        let [mut left, mut right] = services
            .each_ref()
            .map(|service| sink(service, 10, Vec::new()));
        // Each driver has something to send, so that a broken service ends its sink.
        for sink in [&mut left, &mut right] {
            sink.start_send_unpin(Record::Good(1)).unwrap();
            drop(sink.snapshot(Epoch::new(1)));
            drop(sink.commit(Epoch::new(1)));
        }
        let drivers = [Arc::clone(left.core()), Arc::clone(right.core())];
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut step = pin!(next_when(&mut source, (&mut left, &mut right)));
        let waiting = step.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(waiting.is_pending(), "the source is idle");

        services[ending].set_broken(true);
        drivers[ending].lock().unwrap().drive();
        assert!(woken.0.load(Ordering::SeqCst), "sink {ending} ended");
        let step = step.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(
            matches!(step, Poll::Ready(Err(StepError::Sink { index, .. })) if index == ending),
            "{step:?}"
        );
    }
}

#[test]
fn settle_waits_for_every_receipt_and_then_tells_the_failure() {
    let epoch = Epoch::new(4);
    let (resolver, receipt) = Receipt::channel();
    let failed = Receipt::failed(connector_core::CheckpointError::Unknown { epoch });
    let mut settling = settle(epoch, [failed, receipt]);
    let poll = |settling: &mut connector_core::host::Settling| {
        settling.poll_unpin(&mut Context::from_waker(Waker::noop()))
    };
    assert!(poll(&mut settling).is_pending(), "one receipt is open");
    resolver.resolve(Ok(Committed::default()));
    for _ in 0..2 {
        let outcome = poll(&mut settling);
        assert!(
            matches!(outcome, Poll::Ready(Err(_))),
            "a failure never turns into a mark: {outcome:?}"
        );
    }
}
