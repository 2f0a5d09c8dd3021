//! The end of a run.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use connector_core::conformance::FlakyHandler;
use connector_core::host::{FinishError, Keep, checkpoint_wanted, finish};
use connector_core::{Checkpoint, Epoch};
use futures::{FutureExt, SinkExt};

use crate::reference::crew::Drive;
use crate::reference::push_service::PushService;
use crate::reference::sink::{FakeSink, Mode, Record, Setup};

fn sink(service: &PushService, stage: usize) -> FakeSink {
    let setup = Setup {
        mode: Mode::Staged,
        bug: None,
        stage,
        incarnation: 1,
        handler: FlakyHandler::new(|_| 0),
    };
    FakeSink::new(service, setup, Vec::new())
}

#[test]
fn a_run_ends_with_the_mark_after_everything_committed_is_confirmed() {
    let service = PushService::default();
    let mut sink = sink(&service, 10);
    for number in 0..3 {
        sink.start_send_unpin(Record::Good(number)).unwrap();
    }
    let driver = Arc::clone(sink.core());
    let mut steps = Vec::new();
    let finished = {
        let mut finishing = pin!(finish(&mut sink, Epoch::new(6), async |step| {
            steps.push(match step {
                Keep::Save(epoch, _) => ("save", epoch.get()),
                Keep::Committing(epoch) => ("committing", epoch.get()),
                Keep::Settled(epoch) => ("settled", epoch.get()),
            });
            Ok::<(), io::Error>(())
        }));
        let mut cx = Context::from_waker(Waker::noop());
        let mut finished = None;
        for _ in 0..10 {
            if let std::task::Poll::Ready(done) = finishing.as_mut().poll_unpin(&mut cx) {
                finished = Some(done);
                break;
            }
            driver.lock().unwrap().drive();
        }
        finished.expect("it ends").unwrap()
    };
    assert_eq!(finished.epoch, Epoch::new(7));
    assert_eq!(finished.committed.settled, 3);
    assert_eq!(steps, [("save", 7), ("committing", 7), ("settled", 7)]);
}

#[test]
fn a_state_that_cannot_be_kept_is_not_committed() {
    let service = PushService::default();
    let mut sink = sink(&service, 10);
    sink.start_send_unpin(Record::Good(1)).unwrap();
    let driver = Arc::clone(sink.core());
    let outcome = finish(&mut sink, Epoch::default(), async |_| {
        Err(io::Error::other("the disk is full"))
    })
    .now_or_never();
    match outcome {
        Some(Err(error @ FinishError::Keep { .. })) => {
            assert_eq!(error.to_string().matches("epoch 1").count(), 1, "{error}");
        }
        other => panic!("{other:?}"),
    }
    driver.lock().unwrap().drive();
    assert_eq!(service.taken(), Vec::<u64>::new());
}

#[test]
fn a_sink_that_wants_a_checkpoint_is_heard_without_giving_it_a_record() {
    let (left, right) = (PushService::default(), PushService::default());
    let (mut calm, mut half_full) = (sink(&left, 10), sink(&right, 2));
    assert!(
        checkpoint_wanted((&mut calm, &mut half_full))
            .now_or_never()
            .is_none()
    );
    half_full.start_send_unpin(Record::Good(1)).unwrap();
    let wanted = checkpoint_wanted((&mut calm, &mut half_full)).now_or_never();
    assert!(matches!(wanted, Some(Ok(()))), "{wanted:?}");
    drop(half_full.snapshot(Epoch::new(1)));
    assert!(checkpoint_wanted(&mut half_full).now_or_never().is_none());
}
