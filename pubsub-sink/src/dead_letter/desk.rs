//! What the queue's handle and its driver share.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use connector_core::{Cause, CheckpointError, Limits, Receipt, Resolver, Verdict};
use gcp_wire::TopicName;
use tokio::sync::Notify;

use super::{
    DeadLetterError,
    backlog::{Backlog, FlushId, LetterId},
};
use crate::{Published, SinkError};

/// A dead letter that was handed to the publisher, and how to learn what became of it.
pub(super) type Submitted = (LetterId, Receipt<Published>);

pub(super) struct Desk {
    state: Mutex<State>,
    wake: Notify,
}

struct State {
    backlog: Backlog,
    /// Not yet seen by the driver. Each holds its room in the sink that rejected it or is counted
    /// among the outstanding, so those bounds are this one's.
    submitted: Vec<Submitted>,
    verdicts: BTreeMap<LetterId, Resolver<Verdict>>,
    flushes: BTreeMap<FlushId, Resolver<()>>,
    /// A dead letter is lost to this queue: from then on nothing is handled and no flush succeeds.
    ended: Option<CheckpointError>,
    /// The handle is gone.
    closed: bool,
    flush_times: FlushTimes,
}

/// How long flushes that had something to wait for took, whether or not they succeeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FlushTimes {
    pub(crate) last: Option<Duration>,
    pub(crate) longest: Option<Duration>,
}

impl Desk {
    pub(super) fn new(outstanding: Limits) -> Self {
        Self {
            state: Mutex::new(State {
                backlog: Backlog::new(outstanding),
                submitted: Vec::new(),
                verdicts: BTreeMap::new(),
                flushes: BTreeMap::new(),
                ended: None,
                closed: false,
                flush_times: FlushTimes::default(),
            }),
            wake: Notify::new(),
        }
    }

    /// A panic may have left the state half changed: the queue has ended then.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            state.ended.get_or_insert_with(CheckpointError::driver_gone);
            state
        })
    }

    /// Takes a dead letter that is being published.
    pub(super) fn take(&self, bytes: usize, confirmation: Receipt<Published>) -> Receipt<Verdict> {
        let mut state = self.lock();
        if let Some(error) = &state.ended {
            return Receipt::failed(error.clone());
        }
        let (id, admitted) = state.backlog.handle(bytes);
        state.submitted.push((id, confirmation));
        let receipt = if admitted {
            Receipt::ready(Verdict::Drop)
        } else {
            let (resolver, receipt) = Receipt::channel();
            state.verdicts.insert(id, resolver);
            receipt
        };
        drop(state);
        self.wake.notify_one();
        receipt
    }

    /// Waits for every dead letter ever handled.
    pub(super) fn flush(&self) -> (Option<FlushId>, Receipt<()>) {
        let mut state = self.lock();
        if let Some(error) = &state.ended {
            return (None, Receipt::failed(error.clone()));
        }
        let Some(id) = state.backlog.flush() else {
            return (None, Receipt::ready(()));
        };
        let (resolver, receipt) = Receipt::channel();
        state.flushes.insert(id, resolver);
        (Some(id), receipt)
    }

    /// A flush waits no more: how many dead letters of how many it misses. None when it has its
    /// outcome already.
    pub(super) fn give_up(&self, id: Option<FlushId>) -> Option<(usize, usize)> {
        let id = id?;
        let mut state = self.lock();
        drop(state.flushes.remove(&id)?);
        state.backlog.give_up(id)
    }

    /// A flush that had something to wait for has its outcome.
    pub(super) fn flushed(&self, after: Duration) {
        let mut state = self.lock();
        let times = &mut state.flush_times;
        times.last = Some(after);
        times.longest = times.longest.max(Some(after));
    }

    pub(super) fn flush_times(&self) -> FlushTimes {
        self.lock().flush_times
    }

    /// The handle is gone: what is owed is sent, and nothing new comes.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    /// What was handed over since the driver last looked.
    pub(super) fn submitted(&self) -> Vec<Submitted> {
        std::mem::take(&mut self.lock().submitted)
    }

    /// Whether nothing more will be handed over.
    pub(super) fn is_closed(&self) -> bool {
        let state = self.lock();
        state.closed && state.submitted.is_empty()
    }

    /// Waits until there is something to look at.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// It is known what became of a dead letter.
    pub(super) fn confirm(
        &self,
        topic: &TopicName,
        id: LetterId,
        outcome: Result<Published, CheckpointError>,
    ) {
        let cause = match outcome {
            Ok(Published::Stored { .. }) => return self.stored(id),
            // Anything else means that it is not stored, and the publisher will not try again.
            Ok(Published::Rejected { reason, cause }) => Cause::new(SinkError::Rejected {
                destination: topic.to_string(),
                reason,
                cause,
            }),
            Ok(Published::Skipped | Published::NotAccepted) => Cause::new(SinkError::NotReady),
            Err(CheckpointError::Closed { cause }) => cause,
            Err(error) => Cause::new(error),
        };
        let topic = topic.clone();
        self.end(CheckpointError::Handler {
            cause: Cause::new(DeadLetterError::Ended { topic, cause }),
        });
    }

    fn stored(&self, id: LetterId) {
        let mut state = self.lock();
        if state.ended.is_some() {
            return;
        }
        let progress = state.backlog.handle_confirmed(id);
        let decided = |id| state.verdicts.remove(&id);
        let verdicts: Vec<_> = progress.verdicts.into_iter().filter_map(decided).collect();
        let complete = |id| state.flushes.remove(&id);
        let flushes: Vec<_> = progress.flushes.into_iter().filter_map(complete).collect();
        drop(state);
        for verdict in verdicts {
            verdict.resolve(Ok(Verdict::Drop));
        }
        for flush in flushes {
            flush.resolve(Ok(()));
        }
    }

    /// Nothing more can be kept. The first error stays.
    pub(super) fn end(&self, error: CheckpointError) {
        let mut state = self.lock();
        let error = state.ended.get_or_insert(error).clone();
        let verdicts = std::mem::take(&mut state.verdicts);
        let flushes = std::mem::take(&mut state.flushes);
        drop(state);
        for verdict in verdicts.into_values() {
            verdict.resolve(Err(error.clone()));
        }
        for flush in flushes.into_values() {
            flush.resolve(Err(error.clone()));
        }
    }
}
