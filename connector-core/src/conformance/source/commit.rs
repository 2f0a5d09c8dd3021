//! What a commit releases, and when.

use crate::{
    Checkpoint, Epoch,
    conformance::{
        Clause, Hold, SourceHarness, Violation,
        check::{COMMITS, Check, is_unknown},
    },
};

/// C4: a commit settles every sealed epoch up to it, once; beyond the last snapshot it is refused;
/// of an aborted epoch it settles only those before.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c4<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C4);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1, 2, 3, 4]).await;
    let mut acknowledged = check.read(harness, &mut source, 1).await?;
    check.seal(harness, &mut source, 1).await?;
    acknowledged.extend(check.read(harness, &mut source, 1).await?);
    check.seal(harness, &mut source, 2).await?;
    let third = check.read(harness, &mut source, 1).await?;
    check.commit(harness, &mut source, 2, 2).await?;
    check
        .stays(
            harness,
            &acknowledged,
            "a commit sweeps every sealed epoch up to it",
        )
        .await?;
    for done in [2, 1] {
        check.commit(harness, &mut source, done, 0).await?;
    }
    let unknown = source.commit(Epoch::new(3));
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
            &acknowledged,
            "a commit that has nothing to do settles nothing",
        )
        .await?;

    check.seal(harness, &mut source, 3).await?;
    acknowledged.extend(third);
    let fourth = check.read(harness, &mut source, 1).await?;
    check.seal(harness, &mut source, 4).await?;
    source.abort(Epoch::new(4));
    check.commit(harness, &mut source, 4, 1).await?;
    check
        .stays(
            harness,
            &acknowledged,
            "a commit of an aborted epoch settles those before it, and nothing of it",
        )
        .await?;
    check.seal(harness, &mut source, 5).await?;
    check.commit(harness, &mut source, 5, 1).await?;
    acknowledged.extend(fourth);
    check
        .stays(
            harness,
            &acknowledged,
            "an aborted epoch is part of the next",
        )
        .await
}

/// C5: no delivery is acknowledged before its epoch is committed.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c5<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    const EARLY: &str = "nothing is acknowledged before its commit";
    let check = Check(Clause::C5);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1, 2]).await;
    let numbers = check.read(harness, &mut source, 2).await?;
    check.stays(harness, &[], EARLY).await?;
    check.seal(harness, &mut source, 1).await?;
    check.stays(harness, &[], EARLY).await?;
    source.abort(Epoch::new(1));
    check.stays(harness, &[], EARLY).await?;
    check.seal(harness, &mut source, 2).await?;
    check.stays(harness, &[], EARLY).await?;
    check.commit(harness, &mut source, 2, 2).await?;
    check
        .stays(harness, &numbers, "a commit acknowledges")
        .await
}

/// C6: receipts may be dropped, and a commit's receipt resolves only when everything has a verdict.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c6<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C6);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1, 2]).await;
    let mut acknowledged = check.read(harness, &mut source, 1).await?;
    drop(source.snapshot(Epoch::new(1)));
    drop(source.commit(Epoch::new(1)));
    check
        .eventually(harness, &acknowledged, "dropping a receipt stops nothing")
        .await?;
    acknowledged.extend(check.read(harness, &mut source, 1).await?);
    check.seal(harness, &mut source, 2).await?;
    harness.hold(Hold::Everything).await;
    let mut receipt = source.commit(Epoch::new(2));
    harness.let_time_pass().await;
    check.pending(
        &mut receipt,
        "a commit resolves when everything has a verdict",
    )?;
    harness.hold(Hold::Nothing).await;
    let committed = check.ok(harness, receipt, COMMITS).await?;
    check.that(
        committed.total() == 1,
        "a commit counts what it settled",
        committed,
    )?;
    check
        .eventually(harness, &acknowledged, "what is committed is acknowledged")
        .await
}

/// C11: what is committed stays committed when its confirmation fails, and is not handed out again.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c11<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C11);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1]).await;
    let numbers = check.read(harness, &mut source, 1).await?;
    check.seal(harness, &mut source, 1).await?;
    harness.hold(Hold::Everything).await;
    let receipt = source.commit(Epoch::new(1));
    harness.let_time_pass().await;
    // The acknowledgement arrives after the lease's end, and has no effect.
    harness.lapse().await;
    harness.hold(Hold::Nothing).await;
    check
        .nothing_comes(
            harness,
            &mut source,
            "a committed delivery that comes again is not emitted",
        )
        .await?;
    check
        .eventually(
            harness,
            &numbers,
            "a committed delivery that comes again is acknowledged",
        )
        .await?;
    match check.wait(harness, receipt, COMMITS).await? {
        Ok(committed) => check.that(
            committed.total() == 1,
            "a commit says what became of everything it covers",
            committed,
        ),
        // The connector gave up telling, not trying.
        Err(_) => Ok(()),
    }
}
