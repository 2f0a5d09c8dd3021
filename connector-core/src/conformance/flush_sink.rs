//! The clauses as a sink that delivers before the snapshot's receipt (mode `Flush`) is held to
//! them.
//!
//! C5, C11 and C13 say nothing about such a sink beyond the other clauses: its output is outside
//! before the commit by design, so there is nothing that a commit, or its absence, could let out.

use futures::SinkExt;

use super::{
    Clause, Hold, SinkHarness, Violation,
    check::{COMMITS, Check, is_aborted, is_closed, is_out_of_order, is_unknown},
};
use crate::{Checkpoint, Epoch};

/// C1: what was accepted before `snapshot` belongs to that epoch, what is accepted later does not.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c1<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C1);
    let mut sink = harness.make(Vec::new()).await;
    harness.hold(Hold::Odd).await;
    check.feed(harness, &mut sink, 2).await?;
    let first = sink.snapshot(Epoch::new(1));
    check.feed(harness, &mut sink, 3).await?;
    check
        .ok(
            harness,
            first,
            "what is accepted after snapshot belongs to a later epoch",
        )
        .await?;
    let mut second = sink.snapshot(Epoch::new(2));
    harness.let_time_pass().await;
    check.pending(
        &mut second,
        "what is accepted before snapshot belongs to its epoch",
    )?;
    harness.hold(Hold::Nothing).await;
    check
        .ok(
            harness,
            second,
            "a snapshot resolves when what it covers is delivered",
        )
        .await?;
    check
        .stays(harness, &[2, 3], "what a snapshot covers is delivered")
        .await
}

/// C2: an epoch that is not newer than every epoch seen is refused, over aborts and restores.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c2<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C2);
    let mut sink = harness.make(Vec::new()).await;
    check.feed(harness, &mut sink, 1).await?;
    check.seal(harness, &mut sink, 5).await?;
    check.feed(harness, &mut sink, 2).await?;
    for old in [5, 4] {
        let receipt = sink.snapshot(Epoch::new(old));
        check
            .fails(
                harness,
                receipt,
                "an epoch that is not newer is refused as out of order",
                is_out_of_order,
            )
            .await?;
    }
    check.seal(harness, &mut sink, 6).await?;
    check
        .stays(harness, &[1, 2], "a refused snapshot loses nothing")
        .await?;
    sink.abort(Epoch::new(6));
    let again = sink.snapshot(Epoch::new(6));
    check
        .fails(
            harness,
            again,
            "an aborted number is not used again",
            is_out_of_order,
        )
        .await?;
    let kept = check.seal(harness, &mut sink, 7).await?;
    harness.crash(sink).await;
    let mut sink = harness.make(vec![kept.restored()?]).await;
    let receipt = sink.snapshot(Epoch::new(7));
    check
        .fails(
            harness,
            receipt,
            "epochs go on above the restored one",
            is_out_of_order,
        )
        .await?;
    check.seal(harness, &mut sink, 8).await.map(drop)
}

/// C3: a snapshot receipt that is Ok means delivered, or handled by a handler that has flushed; one
/// that failed settles nothing, and what it covered stays owed.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c3<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C3);
    let mut sink = harness.make(Vec::new()).await;
    harness.hold(Hold::Everything).await;
    check.feed(harness, &mut sink, 1).await?;
    let mut receipt = sink.snapshot(Epoch::new(1));
    harness.let_time_pass().await;
    check.pending(
        &mut receipt,
        "a snapshot is not Ok before what it covers is delivered",
    )?;
    harness.hold(Hold::Nothing).await;
    check
        .ok(
            harness,
            receipt,
            "a snapshot resolves when what it covers is delivered",
        )
        .await?;
    check
        .stays(
            harness,
            &[1],
            "a snapshot is Ok only when what it covers is delivered",
        )
        .await?;
    failed_flush_stays_owed(check, harness, &mut sink, 2).await
}

/// The handler's flush fails once, the host aborts and goes on: the record must still arrive.
pub(super) async fn failed_flush_stays_owed<H: SinkHarness>(
    check: Check,
    harness: &mut H,
    sink: &mut H::Connector,
    first: u64,
) -> Result<(), Violation> {
    const HANDLED: &str =
        "no snapshot is Ok before the handler has made durable what was refused before it";
    check.feed_refused(harness, sink, 4).await?;
    check.seal(harness, sink, first).await?;
    let handled = harness.handled().await;
    check.that(handled == [4], HANDLED, handled)?;

    check.feed_refused(harness, sink, 6).await?;
    harness.fail_next_flush().await;
    // A handler's failure may be told or tried again inside, so any of these may fail; but the
    // first one that does not, vouches for the record.
    for epoch in [first + 1, first + 2, first + 3] {
        let epoch = Epoch::new(epoch);
        let receipt = sink.snapshot(epoch);
        match check
            .wait(harness, receipt, "a snapshot's receipt resolves")
            .await?
        {
            Ok(_) => {
                let handled = harness.handled().await;
                return check.that(handled == [4, 6], HANDLED, handled);
            }
            // A connector that cannot keep the promise is terminal, which keeps it.
            Err(error) if is_closed(&error) => return Ok(()),
            Err(_) => sink.abort(epoch),
        }
    }
    Err(check.violation(
        "a snapshot succeeds again once the handler's flush does",
        "three failures in a row",
    ))
}

/// C4: committing what is committed is Ok, beyond the last snapshot it is refused.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c4<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C4);
    let mut sink = harness.make(Vec::new()).await;
    for epoch in [1, 2] {
        check.feed(harness, &mut sink, epoch).await?;
        check.seal(harness, &mut sink, epoch).await?;
    }
    let receipt = sink.commit(Epoch::new(2));
    check.ok(harness, receipt, COMMITS).await?;
    for done in [2, 1] {
        check.commit(harness, &mut sink, done, 0).await?;
    }
    let unknown = sink.commit(Epoch::new(3));
    check
        .fails(
            harness,
            unknown,
            "a commit beyond the last snapshot is refused",
            is_unknown,
        )
        .await?;
    check.seal(harness, &mut sink, 3).await?;
    sink.abort(Epoch::new(3));
    check.commit(harness, &mut sink, 3, 0).await
}

/// C6: dropping a snapshot's receipt stops nothing.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c6<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C6);
    let mut sink = harness.make(Vec::new()).await;
    harness.hold(Hold::Everything).await;
    check.feed(harness, &mut sink, 1).await?;
    drop(sink.snapshot(Epoch::new(1)));
    harness.let_time_pass().await;
    harness.hold(Hold::Nothing).await;
    check
        .eventually(harness, &[1], "dropping a receipt stops nothing")
        .await?;
    check.feed(harness, &mut sink, 2).await?;
    check.seal(harness, &mut sink, 2).await?;
    drop(sink.commit(Epoch::new(2)));
    check.commit(harness, &mut sink, 2, 0).await?;
    check
        .stays(harness, &[1, 2], "dropping a receipt repeats nothing")
        .await
}

/// C7: an abort resolves the pending snapshot receipt, and its items are part of the next epoch.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c7<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C7);
    let mut sink = harness.make(Vec::new()).await;
    harness.hold(Hold::Everything).await;
    check.feed(harness, &mut sink, 1).await?;
    let aborted = sink.snapshot(Epoch::new(1));
    sink.abort(Epoch::new(1));
    check
        .fails(
            harness,
            aborted,
            "an abort resolves the pending receipt to Aborted",
            is_aborted,
        )
        .await?;
    let mut next = sink.snapshot(Epoch::new(2));
    harness.let_time_pass().await;
    check.pending(&mut next, "an aborted epoch's items are part of the next")?;
    harness.hold(Hold::Nothing).await;
    check
        .ok(harness, next, "a snapshot after an abort resolves")
        .await?;
    check
        .stays(harness, &[1], "an abort neither drops nor repeats anything")
        .await?;
    let receipt = sink.commit(Epoch::new(2));
    check.ok(harness, receipt, COMMITS).await?;
    sink.abort(Epoch::new(2));
    sink.abort(Epoch::new(9));
    check.seal(harness, &mut sink, 3).await?;
    check
        .stays(
            harness,
            &[1],
            "an abort of a committed or unknown epoch has no effect",
        )
        .await
}

/// C8: a snapshot vouches for every earlier epoch too, since only the newest state is restored.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c8<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C8);
    let mut sink = harness.make(Vec::new()).await;
    harness.hold(Hold::Odd).await;
    check.feed(harness, &mut sink, 1).await?;
    drop(sink.snapshot(Epoch::new(1)));
    check.feed(harness, &mut sink, 2).await?;
    let mut second = sink.snapshot(Epoch::new(2));
    harness.let_time_pass().await;
    check.pending(
        &mut second,
        "a snapshot is not Ok while an earlier epoch is undelivered",
    )?;
    harness.hold(Hold::Nothing).await;
    check
        .ok(
            harness,
            second,
            "a snapshot resolves when all before it is delivered",
        )
        .await?;
    check
        .stays(
            harness,
            &[1, 2],
            "a snapshot is Ok only when all before it is delivered",
        )
        .await
}

/// C9: what a state vouches for is not delivered again after a restore, and its receipt resolves.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c9<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C9);
    let mut sink = harness.make(Vec::new()).await;
    check.feed(harness, &mut sink, 1).await?;
    let kept = check.seal(harness, &mut sink, 1).await?;
    harness.crash(sink).await;
    let mut sink = harness.make(vec![kept.restored()?]).await;
    let receipt = H::restored(&mut sink);
    check
        .ok(
            harness,
            receipt,
            "the receipt of what a restore commits resolves",
        )
        .await?;
    check.feed(harness, &mut sink, 2).await?;
    check.seal(harness, &mut sink, 2).await?;
    check
        .stays(
            harness,
            &[1, 2],
            "what was delivered before the snapshot is not sent again",
        )
        .await
}

/// C10: `close` delivers what was accepted, and returns.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c10<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C10);
    let mut sink = harness.make(Vec::new()).await;
    check.feed(harness, &mut sink, 1).await?;
    check.seal(harness, &mut sink, 1).await?;
    check.feed(harness, &mut sink, 2).await?;
    check
        .wait(harness, H::close(sink), "close returns within its budget")
        .await?;
    check
        .stays(harness, &[1, 2], "close delivers what was accepted")
        .await
}

/// C12: after the terminal error every call is refused; states given out before stay valid.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c12<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    const CLOSED: &str = "every call after a terminal error answers Closed";
    const VALID: &str = "a state given out before the error stays valid";
    let check = Check(Clause::C12);
    let mut sink = harness.make(Vec::new()).await;
    check.feed(harness, &mut sink, 1).await?;
    let kept = check.seal(harness, &mut sink, 1).await?;
    harness.broken(true).await;
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
    let flushed = check.wait(harness, sink.flush(), CLOSED).await?;
    check.that(flushed.is_err(), "a sink that ended does not flush", "Ok")?;
    harness.crash(sink).await;
    harness.broken(false).await;
    let mut sink = harness.make(vec![kept.restored()?]).await;
    check.feed(harness, &mut sink, 5).await?;
    check.seal(harness, &mut sink, 2).await?;
    check.stays(harness, &[1, 5], VALID).await
}
