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

/// How the ids of one request fared.
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
        let length = self.settings.ack_id_length;
        let fates = self.on(now, subscription, |subscription, around| {
            check_ids(subscription, ack_ids, length).map(|()| subscription.ack_all(around, ack_ids))
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
        let length = self.settings.ack_id_length;
        let fates = self.on(now, subscription, |subscription, around| {
            check_ids(subscription, ack_ids, length)
                .map(|()| subscription.modify_all(around, ack_ids.iter().map(|id| (id, span))))
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
    /// Acknowledges in the order of publication, so that one request may name a key's messages in
    /// any order. The ids were checked.
    pub(super) fn ack_all(&mut self, around: &mut Surroundings<'_>, ack_ids: &[String]) -> Fates {
        let length = around.settings.ack_id_length;
        let mut leases: Vec<(u64, u64, &String)> = Vec::with_capacity(ack_ids.len());
        let mut fates = Fates::default();
        for text in ack_ids {
            match AckId::parse(text, length).filter(|id| id.subscription == self.number) {
                Some(id) => {
                    let seq = self
                        .backlog
                        .standing(id.lease)
                        .1
                        .map_or(u64::MAX, |l| l.seq);
                    leases.push((seq, id.lease, text));
                }
                None => {
                    around.record.refused += 1;
                    fates.failed.insert(text.clone(), AckFailure::InvalidAckId);
                }
            }
        }
        leases.sort_unstable();
        for (_, lease, text) in leases {
            let outcome = self.ack(around, lease);
            fates.note(text, outcome);
        }
        fates
    }

    /// Changes deadlines in the order of the request. The ids were checked.
    pub(super) fn modify_all<'a>(
        &mut self,
        around: &mut Surroundings<'_>,
        changes: impl Iterator<Item = (&'a String, Duration)>,
    ) -> Fates {
        let length = around.settings.ack_id_length;
        let mut fates = Fates::default();
        for (text, span) in changes {
            match AckId::parse(text, length).filter(|id| id.subscription == self.number) {
                Some(id) => {
                    let outcome = self.modify(around, id.lease, span);
                    fates.note(text, outcome);
                }
                None => {
                    around.record.refused += 1;
                    fates.failed.insert(text.clone(), AckFailure::InvalidAckId);
                }
            }
        }
        fates
    }
}

impl Fates {
    fn note(&mut self, ack_id: &str, outcome: Outcome) {
        match outcome {
            Outcome::Done | Outcome::Ignored => self.done.push(ack_id.to_owned()),
            Outcome::Failed(why) => {
                self.failed.insert(ack_id.to_owned(), why);
            }
        }
    }
}

/// Refuses ids that were never given out. An exactly-once subscription refuses them one by one.
pub(super) fn check_ids(
    subscription: &Subscription,
    ack_ids: &[String],
    length: usize,
) -> Result<(), Refusal> {
    if subscription.config.enable_exactly_once_delivery {
        return Ok(());
    }
    let known = |text: &&String| {
        AckId::parse(text, length).is_some_and(|id| id.subscription == subscription.number)
    };
    match ack_ids.iter().find(|text| !known(text)) {
        Some(stranger) => Err(Refusal::AckId {
            ack_id: stranger.clone(),
        }),
        None => Ok(()),
    }
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
