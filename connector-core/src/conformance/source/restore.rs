//! What a state names, and what a restore does with it.

use crate::{
    Checkpoint, Epoch,
    conformance::{
        Clause, Hold, SourceHarness, Violation,
        check::{Check, Kept},
    },
};

/// C8: a state names what was committed and is not confirmed, so restoring it equals having
/// committed it, whatever was in flight.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c8<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    const AGAIN: &str = "what a durable state names is not handed out again";
    let check = Check(Clause::C8);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1, 2]).await;
    let mut numbers = check.read(harness, &mut source, 1).await?;
    check.seal(harness, &mut source, 1).await?;
    harness.hold(Hold::Everything).await;
    drop(source.commit(Epoch::new(1)));
    numbers.extend(check.read(harness, &mut source, 1).await?);
    let kept = check.seal(harness, &mut source, 2).await?;
    harness.crash(source).await;
    harness.hold(Hold::Nothing).await;
    harness.lapse().await;
    let mut source = harness.make(vec![kept.restored()?]).await;
    check.nothing_comes(harness, &mut source, AGAIN).await?;
    check
        .eventually(
            harness,
            &numbers,
            "what a durable state names is acknowledged",
        )
        .await
}

/// C9: a restored source commits what its states name; with several readers each is given the
/// states of all.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c9<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    const AGAIN: &str = "what the restored state names is not handed out again";
    const ACKNOWLEDGED: &str = "what the restored state names is acknowledged";
    let check = Check(Clause::C9);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1, 2, 3]).await;
    let mut numbers = check.read(harness, &mut source, 2).await?;
    let kept = check.seal(harness, &mut source, 1).await?;
    harness.crash(source).await;
    harness.lapse().await;
    let mut source = harness.make(vec![kept.restored()?]).await;
    let rest = check.read(harness, &mut source, 1).await?;
    check.that(!numbers.contains(&rest[0]), AGAIN, &rest)?;
    check.nothing_comes(harness, &mut source, AGAIN).await?;
    check.eventually(harness, &numbers, ACKNOWLEDGED).await?;
    let receipt = H::restored(&mut source);
    check
        .ok(
            harness,
            receipt,
            "the receipt of what a restore commits resolves",
        )
        .await?;
    check.seal(harness, &mut source, 2).await?;
    check.commit(harness, &mut source, 2, 1).await?;
    numbers.extend(rest);

    // A mark says that the commit was confirmed; an acknowledgement may still have had no effect.
    harness.publish(&[4]).await;
    numbers.extend(check.read(harness, &mut source, 1).await?);
    let kept = check.seal(harness, &mut source, 3).await?;
    harness.crash(source).await;
    harness.lapse().await;
    let mut source = harness.make(vec![kept.restored()?.settled(true)]).await;
    check
        .nothing_comes(
            harness,
            &mut source,
            "ids of a settled state stay known as seen",
        )
        .await?;
    check.eventually(harness, &numbers, ACKNOWLEDGED).await?;
    harness.crash(source).await;

    // Two readers one after the other, so that the messages cannot all go to one of them: the
    // first one's leases go on after its end.
    let mut states = Vec::new();
    for (reader, number) in [5, 6].into_iter().enumerate() {
        let mut source = harness.make(Vec::new()).await;
        harness.publish(&[number]).await;
        let read = check.read(harness, &mut source, 1).await?;
        check.that(
            read == [number],
            "a leased message goes to one reader",
            (reader, &read),
        )?;
        numbers.extend(read);
        states.push(check.seal(harness, &mut source, 4).await?);
        harness.crash(source).await;
    }
    harness.lapse().await;
    let restored = states
        .iter()
        .map(Kept::restored)
        .collect::<Result<_, _>>()?;
    let mut source = harness.make(restored).await;
    check
        .nothing_comes(
            harness,
            &mut source,
            "an id counts on whichever reader it comes to",
        )
        .await?;
    check.eventually(harness, &numbers, ACKNOWLEDGED).await
}
