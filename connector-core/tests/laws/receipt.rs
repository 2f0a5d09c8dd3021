//! Receipts resolve once, on every way there is.

use std::{
    error::Error,
    pin::pin,
    task::{Context, Poll, Waker},
};

use connector_core::{
    Cause, CheckpointError, Epoch, Fail, FailureHandler, LogAndDrop, Receipt, Rejected,
    RejectedReason, Verdict, checkpoint::DriverGone,
};
use futures::{FutureExt, future::FusedFuture};

#[test]
fn a_receipt_gives_its_outcome_once() {
    let mut receipt = Receipt::ready(7);
    assert!(!receipt.is_terminated());
    assert!(matches!(receipt.try_now(), Some(Ok(7))));
    assert!(receipt.is_terminated());
    assert!(receipt.try_now().is_none());
}

#[test]
#[should_panic(expected = "after it gave its outcome")]
fn awaiting_a_receipt_that_gave_its_outcome_is_a_mistake() {
    let mut receipt = Receipt::ready(7);
    assert!(receipt.try_now().is_some());
    drop((&mut receipt).now_or_never());
}

#[test]
fn a_resolver_tells_its_receipt_and_knows_when_nobody_listens() {
    let (resolver, mut receipt) = Receipt::channel();
    assert!(receipt.try_now().is_none());
    assert!(!resolver.is_orphaned());
    resolver.resolve(Ok(3));
    assert!(matches!(receipt.try_now(), Some(Ok(3))));

    let (resolver, receipt) = Receipt::<u8>::channel();
    drop(receipt);
    assert!(resolver.is_orphaned());
    resolver.resolve(Ok(3));
}

#[test]
fn a_resolver_that_is_dropped_says_that_the_connector_is_gone() {
    let (resolver, mut receipt) = Receipt::<u8>::channel();
    drop(resolver);
    let Some(Err(CheckpointError::Closed { cause })) = receipt.try_now() else {
        panic!("a connector that is gone must not look slow");
    };
    assert!(cause.get().is::<DriverGone>());
}

#[test]
fn map_reaches_the_value_whatever_the_receipt_waits_for() {
    let (resolver, told) = Receipt::channel();
    let pending = Receipt::pending(async { Ok(2) });
    let receipts = [Receipt::ready(1), pending, told];
    let mut doubled = receipts.map(|receipt| receipt.map(|value: i32| value * 10));
    resolver.resolve(Ok(3));
    let values = doubled
        .each_mut()
        .map(|receipt| receipt.try_now().unwrap().unwrap());
    assert_eq!(values, [10, 20, 30]);

    let mut failed = Receipt::<i32>::failed(CheckpointError::driver_gone()).map(|value| value * 10);
    assert!(matches!(
        failed.try_now(),
        Some(Err(CheckpointError::Closed { .. }))
    ));
}

#[test]
fn a_receipt_that_loses_a_select_loses_nothing() {
    let (resolver, mut receipt) = Receipt::channel();
    for _ in 0..3 {
        let mut waiting = pin!(&mut receipt);
        let polled = waiting.poll_unpin(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    }
    resolver.resolve(Ok("kept"));
    assert!(matches!(
        receipt.poll_unpin(&mut Context::from_waker(Waker::noop())),
        Poll::Ready(Ok("kept"))
    ));
}

#[derive(Debug, thiserror::Error)]
#[error("outer")]
struct Outer(#[source] Inner);

#[derive(Debug, thiserror::Error)]
#[error("inner")]
struct Inner;

#[test]
fn a_printed_chain_names_every_link_once() {
    let epoch = Epoch::new(3);
    let cause = Cause::new(Outer(Inner));
    let error = CheckpointError::Incomplete { epoch, cause };
    let mut chain = vec![error.to_string()];
    let mut link = error.source();
    while let Some(source) = link {
        chain.push(source.to_string());
        link = source.source();
    }
    assert_eq!(chain.len(), 3, "{chain:?}");
    assert!(!chain[0].contains("outer"), "{chain:?}");
    assert_eq!(chain[1..], ["outer", "inner"]);
}

#[test]
fn the_provided_handlers_do_what_their_names_say() {
    let rejected = || {
        Rejected::new("a-sink", "a-topic", RejectedReason::Refused)
            .payload("secret".into())
            .epoch(Epoch::new(1))
            .source(Cause::new(Inner))
    };
    let mut handlers: [(Box<dyn FailureHandler>, Verdict); 2] = [
        (Box::new(Fail), Verdict::Fail),
        (Box::new(LogAndDrop), Verdict::Drop),
    ];
    for (handler, verdict) in &mut handlers {
        let outcome = handler.handle(rejected()).try_now();
        assert!(matches!(outcome, Some(Ok(given)) if given == *verdict));
        assert!(matches!(handler.flush().try_now(), Some(Ok(()))));
    }
    let text = format!("{:?}", rejected());
    assert!(
        text.contains("payload_bytes: Some(6)") && !text.contains("secret"),
        "{text}"
    );
}
