//! Unary pull, acknowledgement and deadline changes.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ack_id::AckId;
use super::message::field;
use super::ordering::Holder;
use super::subscription::{Outcome, Subscription, Surroundings};
use super::{AckFailure, PubsubState, Refusal};
use crate::pubsub::proto::ReceivedMessage;
use crate::time::Time;

/// The largest acknowledge or deadline request (Pub/Sub quotas and limits: 512 KiB).
const PAYLOAD: usize = 524_288;

/// The longest lease that can be asked for, in seconds (interface definition).
const LONGEST_LEASE: i32 = 600;

/// An ack id of a request, and the lease it names; `None` for one that was never given out.
pub(super) type Named<'a> = (Option<u64>, &'a String);

/// How the ids of one request fared. Those that fared well are listed for exactly-once
/// subscriptions only, the only ones that confirm them.
#[derive(Debug, Default)]
pub(super) struct Fates {
    pub(super) done: Vec<String>,
    pub(super) failed: BTreeMap<String, AckFailure>,
}

impl PubsubState {
    /// Delivers up to `max_messages` by a unary pull, under the subscription's own deadline. None
    /// when nothing is ready: waiting is up to the caller.
    ///
    /// # Errors
    ///
    /// When the subscription is missing or detached, or `max_messages` is not positive.
    pub fn pull(
        &mut self,
        now: Time,
        subscription: &str,
        max_messages: i32,
    ) -> Result<Vec<ReceivedMessage>, Refusal> {
        let now = self.clock(now);
        let asked = usize::try_from(max_messages).unwrap_or(0);
        let most = asked.min(self.settings.response_messages);
        self.next_pull += 1;
        let holder = Holder::Pull(self.next_pull);
        self.on(now, subscription, |subscription, around| {
            if asked == 0 {
                return Err(Refusal::MaxMessages);
            }
            if subscription.config.detached {
                return Err(Refusal::Detached);
            }
            Ok(subscription.deliver(around, holder, most))
        })?
    }

    /// Acknowledges messages.
    ///
    /// # Errors
    ///
    /// When the subscription is missing, no id is given, the request is larger than 524,288 bytes,
    /// or an id was never given out for it; nothing took effect then. On an exactly-once
    /// subscription [`Refusal::AckIds`] names the ids that failed; the others took effect.
    pub fn acknowledge(
        &mut self,
        now: Time,
        subscription: &str,
        ack_ids: &[String],
    ) -> Result<(), Refusal> {
        let now = self.clock(now);
        check_size(subscription, ack_ids, 0)?;
        let fates = self.on(now, subscription, |subscription, around| {
            subscription
                .named(ack_ids, around.settings.ack_id_length)
                .map(|named| subscription.ack_all(around, named))
        })??;
        refuse(fates)
    }

    /// Moves the ends of leases to `seconds` from now; 0 gives the messages back.
    ///
    /// # Errors
    ///
    /// As [`acknowledge`](Self::acknowledge), and when `seconds` lies outside 0..=600.
    pub fn modify_ack_deadline(
        &mut self,
        now: Time,
        subscription: &str,
        ack_ids: &[String],
        seconds: i32,
    ) -> Result<(), Refusal> {
        let now = self.clock(now);
        check_size(subscription, ack_ids, seconds)?;
        let span = lease(seconds)?;
        let fates = self.on(now, subscription, |subscription, around| {
            subscription
                .named(ack_ids, around.settings.ack_id_length)
                .map(|named| subscription.modify_all(around, named, std::iter::repeat(span)))
        })??;
        refuse(fates)
    }

    /// Makes a delivered, unacknowledged message available again though its lease lives. True when
    /// there was such a message. Its attempts stay as they are; whether an acknowledgement under the
    /// old lease counts is up to [`Settings::late_acks`](super::Settings::late_acks).
    pub fn handle_early_redelivery(
        &mut self,
        now: Time,
        subscription: &str,
        message_id: &str,
    ) -> bool {
        let now = self.clock(now);
        self.visit(now, subscription, |subscription, around| {
            subscription
                .backlog
                .seq_of(message_id)
                .is_some_and(|seq| subscription.redeliver_early(around, seq))
        })
        .unwrap_or(false)
    }

    /// As [`handle_early_redelivery`](Self::handle_early_redelivery), `after` from now.
    pub fn plan_early_redelivery(
        &mut self,
        now: Time,
        subscription: &str,
        message_id: &str,
        after: Duration,
    ) {
        if after.is_zero() {
            self.handle_early_redelivery(now, subscription, message_id);
            return;
        }
        let now = self.clock(now);
        self.visit(now, subscription, |subscription, around| {
            if let Some(seq) = subscription.backlog.seq_of(message_id) {
                subscription.backlog.plan_early(seq, around.now + after);
            }
        });
    }
}

impl Subscription {
    /// Reads the ack ids of a request. One that was never given out for this subscription refuses
    /// all of them; an exactly-once subscription refuses it alone.
    pub(super) fn named<'a>(
        &self,
        ack_ids: &'a [String],
        length: usize,
    ) -> Result<Vec<Named<'a>>, Refusal> {
        let one_by_one = self.config.enable_exactly_once_delivery;
        ack_ids
            .iter()
            .map(|text| {
                let id = AckId::parse(text, length).filter(|id| id.subscription == self.number);
                match id {
                    None if !one_by_one => Err(Refusal::AckId {
                        ack_id: text.clone(),
                    }),
                    id => Ok((id.map(|id| id.lease), text)),
                }
            })
            .collect()
    }

    /// Acknowledges in the order of publication, so that one request may name a key's messages in
    /// any order.
    pub(super) fn ack_all(
        &mut self,
        around: &mut Surroundings<'_>,
        named: Vec<Named<'_>>,
    ) -> Fates {
        let mut fates = Fates::default();
        let mut in_order: Vec<(u64, Named<'_>)> = named
            .into_iter()
            .map(|(lease, text)| {
                let there = lease.and_then(|lease| self.backlog.standing(lease).1);
                (there.map_or(u64::MAX, |lease| lease.seq), (lease, text))
            })
            .collect();
        in_order.sort_unstable();
        for (_, (lease, text)) in in_order {
            let outcome = match lease {
                Some(lease) => self.ack(around, lease),
                None => stranger(around),
            };
            self.note(&mut fates, text, outcome);
        }
        fates
    }

    /// Changes deadlines in the order of the request.
    pub(super) fn modify_all(
        &mut self,
        around: &mut Surroundings<'_>,
        named: Vec<Named<'_>>,
        spans: impl Iterator<Item = Duration>,
    ) -> Fates {
        let mut fates = Fates::default();
        for ((lease, text), span) in named.into_iter().zip(spans) {
            let outcome = match lease {
                Some(lease) => self.modify(around, lease, span),
                None => stranger(around),
            };
            self.note(&mut fates, text, outcome);
        }
        fates
    }

    fn note(&self, fates: &mut Fates, ack_id: &str, outcome: Outcome) {
        match outcome {
            Outcome::Done | Outcome::Ignored => {
                if self.config.enable_exactly_once_delivery {
                    fates.done.push(ack_id.to_owned());
                }
            }
            Outcome::Failed(why) => {
                fates.failed.insert(ack_id.to_owned(), why);
            }
        }
    }
}

/// What becomes of an id that was never given out, where it is refused alone.
fn stranger(around: &mut Surroundings<'_>) -> Outcome {
    around.record.refused += 1;
    Outcome::Failed(AckFailure::InvalidAckId)
}

/// The lease a request asks for.
pub(super) fn lease(seconds: i32) -> Result<Duration, Refusal> {
    match u64::try_from(seconds) {
        Ok(whole) if seconds <= LONGEST_LEASE => Ok(Duration::from_secs(whole)),
        _ => Err(Refusal::Range {
            what: "ack_deadline_seconds",
            value: seconds.to_string(),
            least: "0",
            most: "600",
        }),
    }
}

fn check_size(subscription: &str, ack_ids: &[String], seconds: i32) -> Result<(), Refusal> {
    if ack_ids.is_empty() {
        return Err(Refusal::NoAckIds);
    }
    // A deadline is encoded in one byte of tag and up to two of number.
    let number = if seconds == 0 {
        0
    } else {
        1 + prost::length_delimiter_len(seconds.unsigned_abs() as usize)
    };
    let size = field(subscription.len())
        + ack_ids.iter().map(|id| field(id.len())).sum::<usize>()
        + number;
    if size > PAYLOAD {
        Err(Refusal::PayloadTooLarge { limit: PAYLOAD })
    } else {
        Ok(())
    }
}

fn refuse(fates: Fates) -> Result<(), Refusal> {
    if fates.failed.is_empty() {
        Ok(())
    } else {
        Err(Refusal::AckIds {
            failures: fates.failed,
        })
    }
}
