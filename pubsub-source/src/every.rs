//! When checkpoints are due.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures::Stream;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// A tick each `period`, for
/// [`with_barriers`](connector_core::host::BarrierExt::with_barriers). The first comes after one period.
///
/// After a checkpoint that took longer than a period, the next tick comes a whole period later and not
/// at once. It needs a tokio runtime with its timer when it is first polled.
///
/// ```
/// use std::time::Duration;
///
/// use connector_core::{Epoch, host::{BarrierExt, Event}};
/// use futures::StreamExt;
/// use pubsub_source::{PubsubSource, every};
///
/// async fn run(source: PubsubSource, mut epoch: Epoch) -> Result<(), Box<dyn std::error::Error>> {
///     let next_epoch = move || {
///         epoch = epoch.next();
///         epoch
///     };
///     let barriers = source.with_barriers(every(Duration::from_secs(10)), next_epoch);
///     let checkpoints = barriers.checkpoints();
///     // Eight messages are worked on at a time; `buffered` keeps their order, and so the cuts.
///     let worked = barriers.map(|event| async { event }).buffered(8);
///     let mut events = std::pin::pin!(worked);
///     while let Some(event) = events.next().await {
///         match event? {
///             Event::Record(_message) => { /* into the sinks */ }
///             Event::Barrier(epoch, state) => {
///                 let _state = state.await?; // and the sinks' states: save them as one, then
///                 drop(checkpoints.commit(epoch));
///             }
///         }
///     }
///     Ok(())
/// }
/// ```
///
/// # Panics
///
/// When `period` is zero.
#[must_use = "streams do nothing unless polled"]
pub fn every(period: Duration) -> Every {
    assert!(
        !period.is_zero(),
        "a tick without a pause in between is none"
    );
    Every {
        period,
        interval: None,
    }
}

/// The stream that [`every`] makes. It has no end.
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Every {
    period: Duration,
    /// From the first poll on: before that there may be no runtime.
    interval: Option<Interval>,
}

impl Stream for Every {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let period = self.period;
        let interval = self.interval.get_or_insert_with(|| {
            let mut interval = interval(period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            // A new interval ticks at once.
            interval.reset();
            interval
        });
        interval.poll_tick(cx).map(|_| Some(()))
    }
}
