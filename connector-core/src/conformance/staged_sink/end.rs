//! How a connector ends.

use crate::{
    Checkpoint, Epoch,
    conformance::{
        Clause, SinkHarness, Violation,
        check::{Check, is_closed},
    },
};

/// C10: `close` finishes what was committed, and lets nothing else out.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c10<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C10);
    let mut sink = harness.make(Vec::new()).await;
    for (number, epoch) in [(2, 1), (4, 2)] {
        check.feed(harness, &mut sink, number).await?;
        check.seal(harness, &mut sink, epoch).await?;
    }
    check.feed(harness, &mut sink, 6).await?;
    drop(sink.commit(Epoch::new(1)));
    check
        .wait(harness, H::close(sink), "close returns within its budget")
        .await?;
    check
        .stays(
            harness,
            &[2],
            "close finishes what was committed, and lets nothing else out",
        )
        .await
}

/// C12: after the terminal error every call is refused; states given out before stay valid.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c12<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    const CLOSED: &str = "every call after a terminal error answers Closed";
    let check = Check(Clause::C12);
    let mut sink = harness.make(Vec::new()).await;
    check.feed(harness, &mut sink, 1).await?;
    let kept = check.seal(harness, &mut sink, 1).await?;
    harness.broken(true).await;
    let receipt = sink.commit(Epoch::new(1));
    check
        .fails(
            harness,
            receipt,
            "a terminal error fails what was waiting",
            is_closed,
        )
        .await?;
    check
        .ends(
            harness,
            &mut sink,
            3,
            "a terminal error comes out of the sink",
        )
        .await?;
    let receipt = sink.snapshot(Epoch::new(2));
    check.fails(harness, receipt, CLOSED, is_closed).await?;
    let receipt = sink.commit(Epoch::new(1));
    check.fails(harness, receipt, CLOSED, is_closed).await?;
    sink.abort(Epoch::new(2));
    harness.crash(sink).await;
    harness.broken(false).await;
    let mut sink = harness.make(vec![kept.restored()?]).await;
    let receipt = H::restored(&mut sink);
    check
        .ok(
            harness,
            receipt,
            "a state given out before the error stays valid",
        )
        .await?;
    check
        .eventually(
            harness,
            &[1],
            "a state given out before the error stays valid",
        )
        .await
}

/// C13: a host that lost ownership drops its connectors, and that lets nothing out.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c13<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C13);
    let mut sink = harness.make(Vec::new()).await;
    check.feed(harness, &mut sink, 1).await?;
    let kept = check.seal(harness, &mut sink, 1).await?;
    check.feed(harness, &mut sink, 2).await?;
    drop(sink);
    check
        .stays(
            harness,
            &[],
            "a sink that is dropped lets nothing uncommitted out",
        )
        .await?;
    let mut sink = harness.make(vec![kept.restored()?]).await;
    let receipt = H::restored(&mut sink);
    check
        .ok(harness, receipt, "the next owner commits what it restored")
        .await?;
    check
        .eventually(
            harness,
            &[1],
            "what a dropped sink had sealed is left to the next owner",
        )
        .await
}
