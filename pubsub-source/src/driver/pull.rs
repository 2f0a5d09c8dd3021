//! One pull stream: reads it, takes its responses apart, and hands them over whole.

use std::{
    future::poll_fn,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use bytes::Bytes;
use gcp_wire::{
    Connection, PullSendError, PullStream, RpcError, SubscriptionName,
    proto::pubsub::{PubsubMessage, ReceivedMessage, StreamingPullRequest, StreamingPullResponse},
};
use tokio::sync::{mpsc, watch};

use super::{
    notices::Journal,
    now,
    verdict::{self, StreamVerdict},
};
use crate::{
    delivery::DeliveryId,
    machine::{AckIds, MessageKey, Pulled, StreamEnd, StreamId},
    message::Message,
    shared::Shared,
};

/// The version of the keepalive protocol in which the service answers pings.
const PROTOCOL_VERSION: i64 = 1;

/// A payload smaller than this part of its response is copied, so that a host that keeps one
/// message does not keep the whole response in memory.
const SMALL_PART: usize = 8;

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
    Response(Result<Option<StreamingPullResponse>, RpcError>),
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
        let mut drained = now();
        let mut open = false;
        loop {
            let reads = *gate.borrow_and_update();
            match self
                .next(&mut stream, &mut gate, reads, &mut drained, &mut open)
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
                    if !self.hand_over(response, drained) {
                        return None;
                    }
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
        drained: &mut Instant,
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
                    *drained = now();
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
    fn hand_over(&self, response: StreamingPullResponse, leased_since: Instant) -> bool {
        let properties = response.subscription_properties;
        let exactly_once = properties.map(|these| these.exactly_once_delivery_enabled);
        let ordered = properties.map(|these| these.message_ordering_enabled);
        let mut received = response.received_messages;
        loop {
            // A batch's deliveries are told apart by 16 bits.
            let rest = (received.len() > DeliveryId::MAX_BATCH)
                .then(|| received.split_off(DeliveryId::MAX_BATCH));
            let mut pulled = take_apart(&self.subscription, received, leased_since);
            pulled.exactly_once = exactly_once;
            pulled.ordered = ordered;
            let (now, random, stream) = (now(), fastrand::f64(), self.stream);
            let told = self.shared.with(|state| {
                state.machine.handle_response(now, random, stream, pulled);
            });
            if told.is_err() {
                return false;
            }
            match rest {
                Some(more) => received = more,
                None => return true,
            }
        }
    }
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

/// Takes a response apart, without the machine's lock.
pub(crate) fn take_apart(
    subscription: &SubscriptionName,
    received: Vec<ReceivedMessage>,
    leased_since: Instant,
) -> Pulled {
    let payloads: usize = received.iter().map(payload).sum();
    let ack_bytes = received.iter().map(|one| one.ack_id.len()).sum();
    let mut ack_ids = AckIds::with_capacity(received.len(), ack_bytes);
    let mut messages = Vec::with_capacity(received.len());
    let mut keys = Vec::with_capacity(received.len());
    for one in received {
        // Without its message a delivery is nothing; its lease runs out. The responses' own limit
        // is far below what the ack ids can hold.
        let Some(message) = one.message else { continue };
        if !ack_ids.push(one.ack_id.as_bytes()) {
            continue;
        }
        keys.push(MessageKey::of(&message.message_id));
        messages.push(message_of(
            subscription,
            message,
            one.delivery_attempt,
            payloads,
        ));
    }
    Pulled {
        messages,
        keys,
        ack_ids,
        leased_since,
        exactly_once: None,
        ordered: None,
    }
}

fn payload(one: &ReceivedMessage) -> usize {
    one.message.as_ref().map_or(0, |message| message.data.len())
}

fn message_of(
    subscription: &SubscriptionName,
    message: PubsubMessage,
    attempt: i32,
    payloads: usize,
) -> Message {
    let small = message.data.len().saturating_mul(SMALL_PART) < payloads;
    let data = if small {
        Bytes::copy_from_slice(&message.data)
    } else {
        message.data
    };
    let published = message.publish_time.map(|time| {
        time.seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(i64::from(time.nanos))
    });
    Message {
        // The machine numbers it.
        delivery: DeliveryId::new(0, 0),
        id: message.message_id,
        data,
        attributes: message.attributes,
        ordering_key: message.ordering_key,
        published,
        attempt: u32::try_from(attempt).unwrap_or(0),
        subscription: subscription.clone(),
    }
}
