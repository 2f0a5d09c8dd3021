//! The clauses as a sink that keeps its output in the state until the commit (mode `Staged`) is
//! held to them.

use super::{
    Clause, Hold, SinkHarness, Violation,
    check::{COMMITS, Check, Kept, is_closed, is_out_of_order, is_unknown, sorted},
    flush_sink::failed_flush_stays_owed,
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
    check.feed(harness, &mut sink, 1).await?;
    check.feed(harness, &mut sink, 2).await?;
    let cut = sink.snapshot(Epoch::new(1));
    // The receipt is looked at only after more was accepted: the cut must not move there.
    check.feed(harness, &mut sink, 3).await?;
    check.saved(harness, 1, cut).await.map(drop)?;
    check.commit(harness, &mut sink, 1, 2).await?;
    check
        .stays(harness, &[1, 2], "an epoch ends where snapshot was called")
        .await?;
    check.seal(harness, &mut sink, 2).await?;
    check.commit(harness, &mut sink, 2, 1).await?;
    check
        .stays(
            harness,
            &[1, 2, 3],
            "what is accepted after snapshot belongs to a later epoch",
        )
        .await
}

/// C2: an epoch that is not newer than every epoch seen is refused, over aborts and restores, and
/// the refusal changes nothing.
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
    check.commit(harness, &mut sink, 5, 1).await?;
    check
        .stays(harness, &[1], "a refused snapshot changes nothing")
        .await?;
    check.seal(harness, &mut sink, 6).await?;
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
    check.commit(harness, &mut sink, 7, 1).await?;
    check
        .stays(harness, &[1, 2], "a refused snapshot loses nothing")
        .await?;
    harness.crash(sink).await;
    let mut sink = harness.make(vec![kept.restored()?.settled(true)]).await;
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

/// C3: staging needs no service, so a snapshot receipt does not wait for one; what is refused waits
/// for the handler's flush, and a failed flush leaves it owed.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c3<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C3);
    let mut sink = harness.make(Vec::new()).await;
    harness.hold(Hold::Everything).await;
    check.feed(harness, &mut sink, 1).await?;
    let kept = check.seal(harness, &mut sink, 1).await?;
    harness.crash(sink).await;
    harness.hold(Hold::Nothing).await;
    let mut sink = harness.make(vec![kept.restored()?]).await;
    check
        .eventually(
            harness,
            &[1],
            "a snapshot is Ok only when what it covers is in the state",
        )
        .await?;
    failed_flush_stays_owed(check, harness, &mut sink, 2).await
}

/// C4: a commit releases every sealed epoch up to it, once; beyond the last snapshot it is refused;
/// of an aborted epoch it releases only those before.
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
    check.feed(harness, &mut sink, 3).await?;
    check.commit(harness, &mut sink, 2, 2).await?;
    check
        .stays(
            harness,
            &[1, 2],
            "a commit sweeps every sealed epoch up to it",
        )
        .await?;
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
    check
        .stays(
            harness,
            &[1, 2],
            "a commit that has nothing to do releases nothing",
        )
        .await?;

    check.seal(harness, &mut sink, 3).await?;
    check.feed(harness, &mut sink, 4).await?;
    check.seal(harness, &mut sink, 4).await?;
    sink.abort(Epoch::new(4));
    check.commit(harness, &mut sink, 4, 1).await?;
    check
        .stays(
            harness,
            &[1, 2, 3],
            "a commit of an aborted epoch releases those before it, and nothing of it",
        )
        .await?;
    check.seal(harness, &mut sink, 5).await?;
    check.commit(harness, &mut sink, 5, 1).await?;
    check
        .stays(
            harness,
            &[1, 2, 3, 4],
            "an aborted epoch is part of the next",
        )
        .await
}

/// C5: no staged item leaves before its epoch is committed.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c5<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    const EARLY: &str = "no staged item leaves before its commit";
    let check = Check(Clause::C5);
    let mut sink = harness.make(Vec::new()).await;
    check.feed(harness, &mut sink, 1).await?;
    check.stays(harness, &[], EARLY).await?;
    check.seal(harness, &mut sink, 1).await?;
    check.stays(harness, &[], EARLY).await?;
    sink.abort(Epoch::new(1));
    check.stays(harness, &[], EARLY).await?;
    check.seal(harness, &mut sink, 2).await?;
    check.feed(harness, &mut sink, 2).await?;
    check.stays(harness, &[], EARLY).await?;
    check.commit(harness, &mut sink, 2, 1).await?;
    check.stays(harness, &[1], "a commit releases").await
}

/// C6: receipts may be dropped; what is committed leaves at once, whatever an earlier epoch waits
/// for elsewhere; a commit's receipt resolves when everything up to it has a verdict.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c6<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C6);
    let mut sink = harness.make(Vec::new()).await;
    check.feed(harness, &mut sink, 2).await?;
    drop(sink.snapshot(Epoch::new(1)));
    drop(sink.commit(Epoch::new(1)));
    check
        .eventually(harness, &[2], "dropping a receipt stops nothing")
        .await?;
    harness.hold(Hold::Odd).await;
    check.feed(harness, &mut sink, 1).await?;
    check.seal(harness, &mut sink, 2).await?;
    drop(sink.commit(Epoch::new(2)));
    check.feed(harness, &mut sink, 4).await?;
    check.seal(harness, &mut sink, 3).await?;
    let mut receipt = sink.commit(Epoch::new(3));
    check
        .eventually(
            harness,
            &[2, 4],
            "what is committed leaves although another destination stands still",
        )
        .await?;
    check.pending(
        &mut receipt,
        "a commit resolves when everything up to it has a verdict",
    )?;
    harness.hold(Hold::Nothing).await;
    check.ok(harness, receipt, COMMITS).await?;
    check
        .eventually(harness, &[1, 2, 4], "what is committed leaves")
        .await
}

/// C7: an aborted epoch is part of the next; nothing of it leaves, is dropped or is sent twice.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c7<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C7);
    let mut sink = harness.make(Vec::new()).await;
    check.feed(harness, &mut sink, 2).await?;
    check.seal(harness, &mut sink, 1).await?;
    check.feed(harness, &mut sink, 4).await?;
    sink.abort(Epoch::new(1));
    check
        .stays(harness, &[], "an abort lets nothing out")
        .await?;
    check.seal(harness, &mut sink, 2).await?;
    check.feed(harness, &mut sink, 6).await?;
    check.seal(harness, &mut sink, 3).await?;
    // Epoch 3 is sealed already when 2 is given up: 2 folds into it and not into the open one.
    sink.abort(Epoch::new(2));
    check.commit(harness, &mut sink, 3, 3).await?;
    check
        .stays(harness, &[2, 4, 6], "an aborted epoch is part of the next")
        .await?;
    let seen = harness.outside().await;
    check.that(
        seen == [2, 4, 6],
        "folding keeps the order in which records were accepted",
        seen,
    )?;
    sink.abort(Epoch::new(3));
    sink.abort(Epoch::new(9));
    check.seal(harness, &mut sink, 4).await?;
    check.commit(harness, &mut sink, 4, 0).await?;
    check
        .stays(
            harness,
            &[2, 4, 6],
            "an abort of a committed or unknown epoch has no effect",
        )
        .await
}

/// C8: a state names what was committed and is not confirmed: with an asynchronous commit nothing
/// else would know of it after a crash.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c8<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C8);
    let mut sink = harness.make(Vec::new()).await;
    harness.hold(Hold::Everything).await;
    check.feed(harness, &mut sink, 1).await?;
    check.seal(harness, &mut sink, 1).await?;
    drop(sink.commit(Epoch::new(1)));
    check.feed(harness, &mut sink, 2).await?;
    let kept = check.seal(harness, &mut sink, 2).await?;
    harness.crash(sink).await;
    harness.hold(Hold::Nothing).await;
    let mut sink = harness.make(vec![kept.restored()?]).await;
    let receipt = H::restored(&mut sink);
    check
        .ok(
            harness,
            receipt,
            "the receipt of what a restore commits resolves",
        )
        .await?;
    check
        .eventually(
            harness,
            &[1, 2],
            "a state names what is committed and not confirmed, as well as what is sealed",
        )
        .await
}

/// C9: a restored sink sends what its state names by itself, unless the host knows it as settled.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c9<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C9);
    let mut sink = harness.make(Vec::new()).await;
    check.feed(harness, &mut sink, 1).await?;
    let kept = check.seal(harness, &mut sink, 1).await?;
    // Accepted and not sealed: the record itself comes again from the source.
    check.feed(harness, &mut sink, 3).await?;
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
    check
        .eventually(harness, &[1], "a restored sink sends what its state names")
        .await?;
    check.feed(harness, &mut sink, 5).await?;
    let second = check.seal(harness, &mut sink, 2).await?;
    check.commit(harness, &mut sink, 2, 1).await?;
    check
        .stays(harness, &[1, 5], "a restored sink goes on as any other")
        .await?;
    harness.crash(sink).await;
    let sink = harness.make(vec![second.restored()?.settled(true)]).await;
    check
        .stays(
            harness,
            &[1, 5],
            "what a settled state names is not sent again",
        )
        .await?;
    harness.crash(sink).await;
    if !H::MERGES_STATES {
        return Ok(());
    }

    let mut states = Vec::new();
    for number in [7, 9] {
        let mut sink = harness.make(Vec::new()).await;
        check.feed(harness, &mut sink, number).await?;
        states.push(check.seal(harness, &mut sink, 3).await?);
        harness.crash(sink).await;
    }
    // One of the states is given twice, as after a change of the number of sinks.
    states.extend(states.first().cloned());
    let restored = states
        .iter()
        .map(Kept::restored)
        .collect::<Result<_, _>>()?;
    let mut sink = harness.make(restored).await;
    let receipt = H::restored(&mut sink);
    check
        .ok(
            harness,
            receipt,
            "the receipt of what a restore commits resolves",
        )
        .await?;
    check
        .eventually(
            harness,
            &[1, 5, 7, 9],
            "an item that several states name is sent once",
        )
        .await
}

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

/// C11: what is committed stays committed however long the service does not answer.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c11<H: SinkHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C11);
    let mut sink = harness.make(Vec::new()).await;
    check.feed(harness, &mut sink, 1).await?;
    check.seal(harness, &mut sink, 1).await?;
    harness.hold(Hold::Everything).await;
    let receipt = sink.commit(Epoch::new(1));
    for _ in 0..3 {
        harness.let_time_pass().await;
    }
    harness.hold(Hold::Nothing).await;
    let mut seen = Vec::new();
    for _ in 0..20 {
        harness.let_time_pass().await;
        seen = sorted(harness.outside().await);
        if !seen.is_empty() {
            break;
        }
    }
    seen.dedup();
    check.that(
        seen == [1],
        "a commit that was not confirmed is still sent",
        &seen,
    )?;
    match check.wait(harness, receipt, COMMITS).await? {
        Ok(committed) => check.that(
            committed.total() == 1,
            "a commit says what became of everything it covers",
            committed,
        ),
        // The sink gave up telling, not trying.
        Err(_) => Ok(()),
    }
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
