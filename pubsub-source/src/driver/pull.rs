//! One pull stream: reads it, takes its responses apart, and hands them over whole.

use std::{
    future::poll_fn,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use gcp_wire::{
    Connection, PullSendError, PullStream, PulledResponse, RpcError, SubscriptionName,
    proto::pubsub::StreamingPullRequest,
};
use tokio::sync::{mpsc, watch};

use super::{
    freshness::Freshness,
    notices::Journal,
    now,
    response::take_apart,
    verdict::{self, StreamVerdict},
};
use crate::{
    delivery::DeliveryId,
    machine::{StreamEnd, StreamId},
    shared::Shared,
};

/// The version of the keepalive protocol in which the service answers pings.
const PROTOCOL_VERSION: i64 = 1;

/// How often a waiting stream is looked at although nothing woke it. Whatever is found on such a
/// look, or by being woken, came after the look before: without it, a message that arrived while
/// the runtime was held up would seem to have just left the server.
const LOOK: Duration = Duration::from_secs(1);

/// What the driver asks of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Command {
    Ping,
    ChangeLease(u32),
    /// Send nothing more, read on to the end.
    HalfClose,
    /// The connection is dead.
    GiveUp,
}

/// The task of one pull stream.
pub(super) struct Pull {
    pub(super) shared: Arc<Shared>,
    pub(super) connection: Connection,
    pub(super) subscription: SubscriptionName,
    pub(super) journal: Journal,
    pub(super) stream: StreamId,
    pub(super) commands: mpsc::Receiver<Command>,
}

/// What a stream's task woke up for.
enum Event {
    Command(Option<Command>),
    Response(Result<Option<PulledResponse>, RpcError>),
    /// The server has begun to answer.
    Opened,
    /// Reading was allowed or forbidden.
    Gate,
    /// Time to look whether something is there.
    Look,
}

impl Pull {
    /// Fields that the service allows on the first request only are set here and nowhere else.
    pub(super) fn first_request(
        &self,
        client_id: String,
        lease_seconds: u32,
        (max_messages, max_bytes): (u64, u64),
    ) -> StreamingPullRequest {
        StreamingPullRequest {
            subscription: self.subscription.as_str().to_owned(),
            stream_ack_deadline_seconds: i32::try_from(lease_seconds).unwrap_or(i32::MAX),
            client_id,
            max_outstanding_messages: i64::try_from(max_messages).unwrap_or(i64::MAX),
            max_outstanding_bytes: i64::try_from(max_bytes).unwrap_or(i64::MAX),
            protocol_version: PROTOCOL_VERSION,
            ..StreamingPullRequest::default()
        }
    }

    /// Reads the stream to its end, and tells how it ended.
    pub(super) async fn run(mut self, first: StreamingPullRequest) {
        let verdict = match self.connection.open_pull(first).await {
            Ok(stream) => match self.read(stream).await {
                Some(verdict) => verdict,
                None => return,
            },
            Err(error) => self.failed(error),
        };
        let (now, random) = (now(), fastrand::f64());
        let stream = self.stream;
        let told = self.shared.with(|state| match verdict {
            StreamVerdict::Ended(end, cause) => {
                let machine = &mut state.machine;
                machine.handle_stream_ended(now, random, stream, end, cause);
            }
            StreamVerdict::Undecodable(error) => {
                state.machine.handle_undecodable(now, random, stream, error);
            }
            StreamVerdict::Final(error) => {
                state.machine.fail(now, error);
                state
                    .machine
                    .handle_stream_ended(now, random, stream, StreamEnd::Again, None);
            }
        });
        // The driver notices a poisoned machine by itself.
        drop(told);
    }

    fn failed(&self, error: RpcError) -> StreamVerdict {
        self.journal.note(&error);
        verdict::of_stream(&self.subscription, error)
    }

    /// `None` when the driver gave the stream up and knows its end.
    async fn read(&mut self, mut stream: PullStream) -> Option<StreamVerdict> {
        let mut gate = self.shared.reads();
        let mut freshness = Freshness::new(now(), stream.connection_window());
        let mut open = false;
        loop {
            let reads = *gate.borrow_and_update();
            match self
                .next(&mut stream, &mut gate, reads, &mut freshness, &mut open)
                .await
            {
                Event::Command(Some(Command::GiveUp)) => {
                    // Before the end is told, or the next stream would be on the same connection.
                    stream.retire_connection();
                    return Some(StreamVerdict::Ended(StreamEnd::Again, None));
                }
                Event::Command(None) => return None,
                Event::Command(Some(command)) => {
                    if let Err(PullSendError::Full) = carry_out(&mut stream, command) {
                        // The connection takes nothing any more: as good as silence.
                        stream.retire_connection();
                        return Some(StreamVerdict::Ended(StreamEnd::Again, None));
                    }
                }
                Event::Opened => {
                    let (now, id) = (now(), self.stream);
                    let told = self
                        .shared
                        .with(|state| state.machine.handle_opened(now, id));
                    if told.is_err() {
                        return None;
                    }
                }
                Event::Gate | Event::Look => {}
                Event::Response(Ok(Some(response))) => {
                    let sent = freshness.handle_read(now(), response.encoded_len() as u64);
                    if !self.hand_over(&response, sent) {
                        return None;
                    }
                    drop(response);
                    host_has_a_turn().await;
                }
                Event::Response(Ok(None)) => {
                    return Some(StreamVerdict::Ended(StreamEnd::Again, None));
                }
                Event::Response(Err(error)) => {
                    return Some(self.failed(error));
                }
            }
        }
    }

    async fn next(
        &mut self,
        stream: &mut PullStream,
        gate: &mut watch::Receiver<bool>,
        reads: bool,
        freshness: &mut Freshness,
        open: &mut bool,
    ) -> Event {
        let response = poll_fn(|cx| {
            let polled = stream.poll_response(cx);
            if !*open && stream.is_open() {
                *open = true;
                // A response that is there already says the same.
                if polled.is_pending() {
                    return Poll::Ready(Event::Opened);
                }
            }
            match polled {
                Poll::Ready(response) => Poll::Ready(Event::Response(response)),
                Poll::Pending => {
                    if stream.is_drained() {
                        freshness.handle_drained(now());
                    } else {
                        freshness.handle_quiet(now(), stream.received());
                    }
                    Poll::Pending
                }
            }
        });
        tokio::select! {
            biased;
            command = self.commands.recv() => Event::Command(command),
            event = response, if reads => event,
            () = tokio::time::sleep(LOOK), if reads => Event::Look,
            // A gate without a sender is gone together with everything else.
            _ = gate.changed() => Event::Gate,
        }
    }

    /// Answers whether the machine could take it.
    fn hand_over(&self, response: &PulledResponse, leased_since: Instant) -> bool {
        let mut from = 0;
        loop {
            // A batch's deliveries are told apart by few bits.
            let part = from..response.len().min(from + DeliveryId::MAX_BATCH);
            from = part.end;
            let pulled = take_apart(&self.subscription, response, part, leased_since);
            let (now, random, stream) = (now(), fastrand::f64(), self.stream);
            let told = self.shared.with(|state| {
                state.machine.handle_response(now, random, stream, pulled);
            });
            if told.is_err() {
                return false;
            }
            if from == response.len() {
                return true;
            }
        }
    }
}

/// Lets whoever waits for messages have those of one response before the next is taken apart: what
/// was just written is then read from the processor's cache, and not from memory.
///
/// Unlike [`tokio::task::yield_now`], which waits until the runtime has looked for events: a call
/// to the kernel for each response.
async fn host_has_a_turn() {
    let mut had = false;
    poll_fn(|context| {
        if had {
            return Poll::Ready(());
        }
        had = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn carry_out(stream: &mut PullStream, command: Command) -> Result<(), PullSendError> {
    match command {
        Command::Ping => stream.ping(),
        Command::ChangeLease(seconds) => stream.send(&StreamingPullRequest {
            stream_ack_deadline_seconds: i32::try_from(seconds).unwrap_or(i32::MAX),
            ..StreamingPullRequest::default()
        }),
        Command::HalfClose => {
            stream.half_close();
            Ok(())
        }
        Command::GiveUp => Ok(()),
    }
}
