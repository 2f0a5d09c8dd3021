//! What a commit releases, and when.

use crate::{
    Checkpoint, Epoch,
    conformance::{
        Clause, Hold, SinkHarness, Violation,
        check::{COMMITS, Check, is_unknown, sorted},
    },
};

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
