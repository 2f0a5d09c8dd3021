//! The cut, and what its receipt promises.

use crate::{
    Checkpoint, Epoch,
    conformance::{
        Clause, Hold, SourceHarness, Violation,
        check::{Check, is_out_of_order},
    },
};

/// C1: what was handed out before `snapshot` belongs to that epoch, what is handed out later or
/// sits fetched in a buffer does not.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c1<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C1);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1, 2, 3, 4, 5]).await;
    let mut acknowledged = check.read(harness, &mut source, 2).await?;
    let cut = source.snapshot(Epoch::new(1));
    // The receipt is looked at only after more was read: the cut must not move there.
    let later = check.read(harness, &mut source, 2).await?;
    check.saved(harness, 1, cut).await.map(drop)?;
    check.commit(harness, &mut source, 1, 2).await?;
    check
        .stays(
            harness,
            &acknowledged,
            "an epoch ends where snapshot was called",
        )
        .await?;
    check.seal(harness, &mut source, 2).await?;
    check.commit(harness, &mut source, 2, 2).await?;
    acknowledged.extend(later);
    check
        .stays(
            harness,
            &acknowledged,
            "what sits fetched in a buffer belongs to no epoch",
        )
        .await?;
    if !H::SPLITS_MESSAGES {
        return Ok(());
    }

    acknowledged.extend(check.read(harness, &mut source, 1).await?);
    check.seal(harness, &mut source, 3).await?;
    check.commit(harness, &mut source, 3, 1).await?;
    harness.publish_group(&[11, 12, 13]).await;
    let begun = check.read(harness, &mut source, 2).await?;
    check.that(
        begun == [11, 12],
        "the records of a message come in order",
        &begun,
    )?;
    let partial = check.seal(harness, &mut source, 4).await?;
    check.commit(harness, &mut source, 4, 0).await?;
    check
        .stays(
            harness,
            &acknowledged,
            "a message belongs to the epoch of its last record",
        )
        .await?;
    harness.crash(source).await;
    harness.lapse().await;
    let mut source = harness.make(vec![partial.restored()?]).await;
    let rest = check.read(harness, &mut source, 1).await?;
    check.that(
        rest == [13],
        "the state says how many records of an unfinished message were handed out",
        &rest,
    )?;
    check.seal(harness, &mut source, 5).await?;
    check.commit(harness, &mut source, 5, 1).await?;
    acknowledged.extend([11, 12, 13]);
    check
        .stays(
            harness,
            &acknowledged,
            "a message is settled with its last record",
        )
        .await
}

/// C2: an epoch that is not newer than every epoch seen is refused, over aborts and restores, and
/// the refusal changes nothing.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c2<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    const REFUSED: &str = "an epoch that is not newer is refused as out of order";
    let check = Check(Clause::C2);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1, 2]).await;
    let first = check.read(harness, &mut source, 1).await?;
    check.seal(harness, &mut source, 5).await?;
    let second = check.read(harness, &mut source, 1).await?;
    for old in [5, 4] {
        let receipt = source.snapshot(Epoch::new(old));
        check
            .fails(harness, receipt, REFUSED, is_out_of_order)
            .await?;
    }
    check.commit(harness, &mut source, 5, 1).await?;
    check
        .stays(harness, &first, "a refused snapshot changes nothing")
        .await?;
    check.seal(harness, &mut source, 6).await?;
    source.abort(Epoch::new(6));
    let again = source.snapshot(Epoch::new(6));
    check
        .fails(
            harness,
            again,
            "an aborted number is not used again",
            is_out_of_order,
        )
        .await?;
    let kept = check.seal(harness, &mut source, 7).await?;
    check.commit(harness, &mut source, 7, 1).await?;
    check
        .stays(
            harness,
            &[first, second].concat(),
            "a refused snapshot loses nothing",
        )
        .await?;
    harness.crash(source).await;
    let mut source = harness.make(vec![kept.restored()?]).await;
    let receipt = source.snapshot(Epoch::new(7));
    check
        .fails(
            harness,
            receipt,
            "epochs go on above the restored one",
            is_out_of_order,
        )
        .await?;
    check.seal(harness, &mut source, 8).await.map(drop)
}

/// C3: a source's snapshot receipt is ready at once, whatever the service does.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c3<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C3);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1, 2]).await;
    check.read(harness, &mut source, 1).await?;
    harness.hold(Hold::Everything).await;
    for epoch in [1, 2] {
        let mut receipt = source.snapshot(Epoch::new(epoch));
        let ready = receipt.try_now();
        check.that(
            matches!(ready, Some(Ok(_))),
            "a source's snapshot receipt is ready at once",
            receipt,
        )?;
        // The second round has a commit under way that is not confirmed.
        drop(source.commit(Epoch::new(epoch)));
        if epoch == 1 {
            check.read(harness, &mut source, 1).await?;
        }
    }
    Ok(())
}

/// C7: an aborted epoch is part of the next; nothing of it is released, dropped or handed out again.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c7<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C7);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1, 2]).await;
    let mut acknowledged = check.read(harness, &mut source, 1).await?;
    check.seal(harness, &mut source, 1).await?;
    acknowledged.extend(check.read(harness, &mut source, 1).await?);
    source.abort(Epoch::new(1));
    check
        .nothing_comes(harness, &mut source, "an abort hands nothing out again")
        .await?;
    check
        .stays(harness, &[], "an abort settles nothing")
        .await?;
    check.seal(harness, &mut source, 2).await?;
    check.commit(harness, &mut source, 2, 2).await?;
    check
        .stays(
            harness,
            &acknowledged,
            "an aborted epoch is part of the next",
        )
        .await?;
    source.abort(Epoch::new(2));
    source.abort(Epoch::new(9));
    check.seal(harness, &mut source, 3).await?;
    check.commit(harness, &mut source, 3, 0).await?;
    check
        .nothing_comes(
            harness,
            &mut source,
            "an abort of a committed epoch has no effect",
        )
        .await
}
