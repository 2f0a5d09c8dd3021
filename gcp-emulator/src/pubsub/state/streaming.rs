//! Pull streams.

use super::acknowledge::{Fates, lease};
use super::name;
use super::ordering::Holder;
use super::stream::{End, Stream, StreamId};
use super::subscription::{Subscription, Surroundings};
use super::{AckFailure, PubsubState, Refusal};
use crate::pubsub::proto::streaming_pull_response::SubscriptionProperties;
use crate::pubsub::proto::{StreamingPullRequest, StreamingPullResponse};
use crate::time::Time;

/// How many polls in a row a stream lets pass for the others. More than one, since a driver may poll
/// twice before its task goes to the back of the queue; few, since the others' clients may be stuck.
const PATIENCE: u8 = 3;

/// What a pull stream has to send.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StreamPoll {
    /// A response. The leases of its messages run from now.
    Response(Box<StreamingPullResponse>),
    /// Nothing yet; [`PubsubState::take_woken`] will name the stream when that changes.
    Idle,
    /// The stream is over: with OK, or with this status.
    End(Option<Refusal>),
}

impl PubsubState {
    /// Opens a pull stream by its first request, and does what else that asks for.
    ///
    /// # Errors
    ///
    /// When the subscription is missing, detached or misnamed, the deadline lies outside 10..=600,
    /// or the request names unknown ack ids.
    pub fn open_stream(
        &mut self,
        now: Time,
        first: &StreamingPullRequest,
    ) -> Result<StreamId, Refusal> {
        let now = self.clock(now);
        let id = StreamId(self.next_stream + 1);
        self.on(now, &first.subscription, |subscription, around| {
            if subscription.config.detached {
                return Err(Refusal::Detached);
            }
            let mut stream = Stream::open(around.now, first)?;
            let fates = settle(subscription, around, first)?;
            if subscription.config.enable_exactly_once_delivery {
                stream.confirm(fates);
            }
            subscription.streams.insert(id.0, stream);
            around.record.streams_opened += 1;
            Ok(())
        })??;
        self.next_stream += 1;
        self.streams.insert(id, first.subscription.clone());
        Ok(id)
    }

    /// A later request arrived on a stream.
    ///
    /// # Errors
    ///
    /// What the stream ends with; [`poll_stream`](Self::poll_stream) says it too. A request on a
    /// stream that is over is ignored.
    pub fn handle_stream_request(
        &mut self,
        now: Time,
        id: StreamId,
        request: &StreamingPullRequest,
    ) -> Result<(), Refusal> {
        let now = self.clock(now);
        let Some(name) = self.streams.get(&id).cloned() else {
            return Ok(());
        };
        let answer_pings = self.settings.answer_pings;
        self.on(now, &name, |subscription, around| {
            let open = subscription
                .streams
                .get_mut(&id.0)
                .filter(|stream| stream.end.is_none());
            let Some(stream) = open else { return Ok(()) };
            let heard = stream.hear(around.now, request, answer_pings);
            let settled = heard.and_then(|()| settle(subscription, around, request));
            let exactly_once = subscription.config.enable_exactly_once_delivery;
            let Some(stream) = subscription.streams.get_mut(&id.0) else {
                return Ok(());
            };
            match settled {
                Ok(fates) => {
                    if exactly_once {
                        stream.confirm(fates);
                    }
                    Ok(())
                }
                Err(refusal) => {
                    stream.end = Some(End::Refused(refusal.clone()));
                    Err(refusal)
                }
            }
        })
        .unwrap_or(Ok(()))
    }

    /// The client half-closed a stream: it ends with OK at once, and what is outstanding waits for
    /// its deadlines.
    pub fn handle_half_close(&mut self, now: Time, id: StreamId) {
        self.end_stream(now, id, None);
    }

    /// Ends a stream: with OK, or with a status.
    pub fn end_stream(&mut self, now: Time, id: StreamId, refusal: Option<Refusal>) {
        let now = self.clock(now);
        let Some(name) = self.streams.get(&id).cloned() else {
            return;
        };
        self.visit(now, &name, |subscription, _| {
            if let Some(stream) = subscription.streams.get_mut(&id.0) {
                stream
                    .end
                    .get_or_insert(refusal.map_or(End::Clean, End::Refused));
            }
        });
    }

    /// A stream is gone: reset, disconnected, or ended and told.
    pub fn close_stream(&mut self, now: Time, id: StreamId) {
        let now = self.clock(now);
        let Some(name) = self.streams.remove(&id) else {
            return;
        };
        self.woken.remove(&id);
        self.visit(now, &name, |subscription, around| {
            subscription.active_at = around.now;
            subscription.close(around, id.0);
        });
    }

    /// What a stream has to send now. Call it when the client has room for a response: what is
    /// returned counts as delivered.
    pub fn poll_stream(&mut self, now: Time, id: StreamId) -> StreamPoll {
        let now = self.clock(now);
        let Some(name) = self.streams.get(&id).cloned() else {
            return StreamPoll::End(None);
        };
        let polled = self.visit(now, &name, |subscription, around| {
            subscription.poll_stream(around, id)
        });
        let gone = Refusal::SubscriptionGone {
            id: name::id(&name),
        };
        // A subscription recreated under the same name knows nothing of the stream.
        polled.flatten().unwrap_or(StreamPoll::End(Some(gone)))
    }
}

impl Subscription {
    fn poll_stream(&mut self, around: &mut Surroundings<'_>, id: StreamId) -> Option<StreamPoll> {
        let waiting = self
            .streams
            .iter()
            .filter(|(number, stream)| **number != id.0 && stream.idle && stream.has_room())
            .count();
        let available = self.backlog.available();
        let deliverable = self.backlog.next_for(Holder::Stream(id.0)).is_some();
        let stream = self.streams.get_mut(&id.0)?;
        if stream.has_confirmations() || stream.pings > 0 {
            stream.idle = false;
            stream.responses += 1;
            stream.pings = 0;
            let acks = Some(std::mem::take(&mut stream.acks));
            let extensions = Some(std::mem::take(&mut stream.extensions));
            return Some(StreamPoll::Response(Box::new(StreamingPullResponse {
                acknowledge_confirmation: acks.filter(|acks| *acks != Default::default()),
                modify_ack_deadline_confirmation: extensions.filter(|e| *e != Default::default()),
                ..self.empty_response()
            })));
        }
        if let Some(end) = &stream.end {
            let refusal = match end {
                End::Clean => None,
                End::Refused(refusal) => Some(refusal.clone()),
            };
            return Some(StreamPoll::End(refusal));
        }
        if !deliverable || !stream.has_room() {
            stream.idle = true;
            stream.served = false;
            stream.yielded = 0;
            return Some(StreamPoll::Idle);
        }
        // Streams of one subscription share: who was just served lets the others, which wait to be
        // polled, go first, for a while.
        if waiting > 0 && stream.served && stream.yielded < PATIENCE {
            stream.yielded += 1;
            around.woken.insert(id);
            return Some(StreamPoll::Idle);
        }
        stream.idle = false;
        stream.served = true;
        stream.yielded = 0;
        stream.responses += 1;
        let share = available.div_ceil(waiting + 1).max(1);
        let most = share.min(around.settings.response_messages);
        let received_messages = self.deliver(around, Holder::Stream(id.0), most);
        Some(StreamPoll::Response(Box::new(StreamingPullResponse {
            received_messages,
            ..self.empty_response()
        })))
    }

    fn empty_response(&self) -> StreamingPullResponse {
        StreamingPullResponse {
            subscription_properties: Some(SubscriptionProperties {
                exactly_once_delivery_enabled: self.config.enable_exactly_once_delivery,
                message_ordering_enabled: self.config.enable_message_ordering,
            }),
            ..StreamingPullResponse::default()
        }
    }
}

/// Acknowledges and extends what a request on a stream names. One malformed id ends the stream
/// before any of the request took effect (interface definition of `StreamingPullRequest`).
fn settle(
    subscription: &mut Subscription,
    around: &mut Surroundings<'_>,
    request: &StreamingPullRequest,
) -> Result<(Fates, Fates), Refusal> {
    let length = around.settings.ack_id_length;
    let (ids, seconds) = (
        &request.modify_deadline_ack_ids,
        &request.modify_deadline_seconds,
    );
    if ids.len() != seconds.len() {
        return Err(Refusal::UnequalLists {
            ids: ids.len(),
            seconds: seconds.len(),
        });
    }
    let acked = subscription.named(&request.ack_ids, length)?;
    let modified = subscription.named(ids, length)?;
    let spans = seconds
        .iter()
        .map(|one| lease(*one))
        .collect::<Result<Vec<_>, _>>()?;
    let acks = subscription.ack_all(around, acked);
    let extensions = subscription.modify_all(around, modified, spans.into_iter());
    Ok((acks, extensions))
}

impl Stream {
    /// Notes what is to be confirmed, as exactly-once subscriptions do.
    fn confirm(&mut self, (acks, extensions): (Fates, Fates)) {
        self.acks.ack_ids.extend(acks.done);
        for (id, why) in acks.failed {
            match why {
                AckFailure::InvalidAckId => self.acks.invalid_ack_ids.push(id),
                AckFailure::UnorderedAckId => self.acks.unordered_ack_ids.push(id),
            }
        }
        self.extensions.ack_ids.extend(extensions.done);
        self.extensions
            .invalid_ack_ids
            .extend(extensions.failed.into_keys());
    }
}
