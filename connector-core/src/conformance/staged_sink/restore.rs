//! What a state names, and what a restore does with it.

use crate::{
    Checkpoint, Epoch,
    conformance::{
        Clause, Hold, SinkHarness, Violation,
        check::{Check, Kept},
    },
};

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
