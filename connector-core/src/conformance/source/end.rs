//! How a connector ends.

use futures::StreamExt;

use crate::{
    Checkpoint, Epoch,
    conformance::{
        Clause, SourceHarness, Violation,
        check::{Check, is_closed, sorted},
    },
};

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
