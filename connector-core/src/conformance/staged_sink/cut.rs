//! The cut, and what its receipt promises.

use crate::{
    Checkpoint, Epoch,
    conformance::{
        Clause, Hold, SinkHarness, Violation,
        check::{Check, is_out_of_order},
        flush_sink::failed_flush_stays_owed,
    },
};

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
