//! The clauses as a source is held to them.

use futures::StreamExt;

use super::{
    Clause, Hold, SourceHarness, Violation,
    check::{COMMITS, Check, Kept, is_closed, is_out_of_order, is_unknown, sorted},
};
use crate::{Checkpoint, Epoch};

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

/// C10: `close` finishes what was committed and releases every other lease.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c10<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C10);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1, 2, 3]).await;
    let committed = check.read(harness, &mut source, 1).await?;
    check.seal(harness, &mut source, 1).await?;
    let sealed = check.read(harness, &mut source, 1).await?;
    check.seal(harness, &mut source, 2).await?;
    let open = check.read(harness, &mut source, 1).await?;
    drop(source.commit(Epoch::new(1)));
    check
        .wait(harness, H::close(source), "close returns within its budget")
        .await?;
    check
        .stays(
            harness,
            &committed,
            "close finishes what was committed, and settles nothing else",
        )
        .await?;
    let mut source = harness.make(Vec::new()).await;
    let again = check.read(harness, &mut source, 2).await?;
    check.that(
        sorted(again.clone()) == sorted([sealed, open].concat()),
        "close releases every other lease, so that the messages come again at once",
        again,
    )
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

/// C12: the terminal error comes once, then the end; every later call is refused; states given out
/// before stay valid.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c12<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    const TOLD: &str = "a terminal error comes out of the stream";
    const CLOSED: &str = "every call after a terminal error answers Closed";
    let check = Check(Clause::C12);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1]).await;
    let numbers = check.read(harness, &mut source, 1).await?;
    let kept = check.seal(harness, &mut source, 1).await?;
    harness.broken(true).await;
    match check.wait(harness, source.next(), TOLD).await? {
        Some(Err(_)) => {}
        Some(Ok(message)) => return Err(check.violation(TOLD, H::number(&message).to_string())),
        None => return Err(check.violation(TOLD, "the stream ended as if all were well")),
    }
    let after = check
        .wait(harness, source.next(), "a stream ends after its error")
        .await?;
    check.that(
        after.is_none(),
        "a terminal error comes out once",
        after.map(|item| {
            item.map(|message| H::number(&message))
                .map_err(|e| e.to_string())
        }),
    )?;
    let receipt = source.snapshot(Epoch::new(2));
    check.fails(harness, receipt, CLOSED, is_closed).await?;
    let receipt = source.commit(Epoch::new(1));
    check.fails(harness, receipt, CLOSED, is_closed).await?;
    source.abort(Epoch::new(2));
    harness.crash(source).await;
    harness.broken(false).await;
    harness.lapse().await;
    let mut source = harness.make(vec![kept.restored()?]).await;
    check
        .nothing_comes(
            harness,
            &mut source,
            "a state given out before the error stays valid",
        )
        .await?;
    check
        .eventually(
            harness,
            &numbers,
            "a state given out before the error stays valid",
        )
        .await
}

/// C13: a host that lost ownership drops its connectors, and that settles nothing.
///
/// # Errors
///
/// The first [`Violation`] found.
pub async fn c13<H: SourceHarness>(harness: &mut H) -> Result<(), Violation> {
    let check = Check(Clause::C13);
    let mut source = harness.make(Vec::new()).await;
    harness.publish(&[1, 2]).await;
    let mut numbers = check.read(harness, &mut source, 1).await?;
    check.seal(harness, &mut source, 1).await?;
    numbers.extend(check.read(harness, &mut source, 1).await?);
    drop(source);
    check
        .stays(
            harness,
            &[],
            "a source that is dropped acknowledges nothing uncommitted",
        )
        .await?;
    harness.lapse().await;
    let mut source = harness.make(Vec::new()).await;
    let again = check.read(harness, &mut source, 2).await?;
    check.that(
        sorted(again.clone()) == sorted(numbers),
        "what a dropped source had not committed goes to the next owner",
        again,
    )
}
