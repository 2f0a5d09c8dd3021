//! Feeding a sink for as long as the measurement takes.

use std::pin::Pin;

use connector_core::Receipt;
use futures::{FutureExt, Sink, StreamExt as _, future::poll_fn, stream::FuturesUnordered};
use measure::{Failure, Flags, Latencies, Measured, Usage, nothing_in, now};

/// A sink under measurement.
pub(crate) trait Driven: Sink<u64> + Unpin {
    /// What becomes of a record that is waited for.
    type Outcome: Send + 'static;

    /// Accepts a record as `start_send` does, and tells what becomes of it.
    fn submit(&mut self, record: u64) -> Receipt<Self::Outcome>;

    /// Whether that is what was wanted.
    fn is_done(outcome: &Self::Outcome) -> bool;

    /// Records that the service has taken so far.
    fn done(&self) -> u64;

    /// Records without a verdict.
    fn unanswered(&self) -> u64;
}

/// Feeds numbers, and prints what came of it. One in `sampled` is waited for, to see how long it
/// takes.
pub(crate) async fn drive<S>(
    mode: &'static str,
    flags: &Flags,
    mut sink: S,
    sampled: u64,
    base: Usage,
) -> Result<(), Failure>
where
    S: Driven<Error: Into<Failure>> + Send,
{
    let warm = flags.before();
    let whole = warm + flags.lasting();
    let start = now();
    let end = tokio::time::sleep(whole);
    tokio::pin!(end);
    let mut began = None;
    let mut latencies = Latencies::default();
    let mut receipts = FuturesUnordered::new();
    let (mut number, mut held_max, mut errors) = (0_u64, 0_u64, 0_u64);
    loop {
        tokio::select! {
            biased;
            ready = poll_fn(|cx| Pin::new(&mut sink).poll_ready(cx)) => ready.map_err(Into::into)?,
            // Only where the sink has no room: one without a server never has any again.
            () = &mut end => break,
        }
        if number.is_multiple_of(sampled) {
            while let Some(done) = receipts.next().now_or_never().flatten() {
                match done {
                    Some(took) => latencies.add(took),
                    None => errors += 1,
                }
            }
            if began.is_none() && start.elapsed() >= warm {
                began = Some((now(), sink.done(), Usage::now()?));
                latencies = Latencies::default();
            }
            if start.elapsed() >= whole || number >= flags.enough() {
                break;
            }
            held_max = held_max.max(sink.unanswered());
            let sent = now();
            let receipt = sink.submit(number);
            receipts.push(FutureExt::map(receipt, move |outcome| {
                let done = outcome.is_ok_and(|outcome| S::is_done(&outcome));
                done.then(|| sent.elapsed())
            }));
        } else {
            let sent = Pin::new(&mut sink).start_send(number);
            sent.map_err(Into::into)?;
        }
        number += 1;
    }
    let (since, done_before, before) =
        began.ok_or_else(|| nothing_in(start.elapsed().as_secs_f64()))?;
    let seconds = since.elapsed().as_secs_f64();
    let (messages, after) = (sink.done() - done_before, Usage::now()?);
    if messages == 0 {
        // Closing would wait for what nobody takes.
        return Err(nothing_in(seconds));
    }
    let closed = poll_fn(|cx| Pin::new(&mut sink).poll_close(cx)).await;
    closed.map_err(Into::into)?;
    Measured {
        mode,
        messages,
        seconds,
        slowest_second: None,
        base,
        before,
        after,
        latencies,
        held_max,
        extended_ids: 0,
        suppressed: 0,
        errors,
    }
    .print()
}
