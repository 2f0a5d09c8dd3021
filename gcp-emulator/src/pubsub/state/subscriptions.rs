//! Creating, changing and listing subscriptions.

use super::backlog::Backlog;
use super::filter::Filter;
use super::name::{self, Kind};
use super::subscription::Subscription;
use super::topics::DELETED;
use super::{PubsubState, Refusal, config};
use crate::page::page;
use crate::pubsub::proto::{self, PushConfig, UpdateSubscriptionRequest};
use crate::time::{Time, from_proto_duration};

impl PubsubState {
    /// Creates a subscription and returns it as stored. It gets what is published from now on.
    ///
    /// # Errors
    ///
    /// When it exists, its topic or dead-letter topic does not, a setting or the filter is not
    /// allowed, or it asks for another way of delivery than pulling.
    pub fn create_subscription(
        &mut self,
        now: Time,
        mut wanted: proto::Subscription,
    ) -> Result<proto::Subscription, Refusal> {
        let now = self.clock(now);
        name::check(Kind::Subscription, &wanted.name)?;
        name::check(Kind::Topic, &wanted.topic)?;
        if self.subscriptions.contains_key(&wanted.name) {
            return Err(Refusal::Exists {
                id: name::id(&wanted.name),
            });
        }
        config::complete(&mut wanted)?;
        let filter = Filter::parse(&wanted.filter)?;
        self.check_dead_letter_topic(&wanted)?;
        let Some(topic) = self.topics.get_mut(&wanted.topic) else {
            return Err(Refusal::Missing {
                id: name::id(&wanted.topic),
            });
        };
        wanted.topic_message_retention_duration = topic.config.message_retention_duration;
        if !wanted.detached {
            topic.subscriptions.insert(wanted.name.clone());
        }
        let number = self.next_number;
        self.next_number += 1;
        let subscription = Subscription {
            number,
            filter,
            backlog: Backlog::new(wanted.enable_message_ordering, wanted.retain_acked_messages),
            streams: std::collections::BTreeMap::new(),
            active_at: now,
            retention: std::time::Duration::ZERO,
            config: wanted.clone(),
        };
        self.numbers.insert(number, wanted.name.clone());
        self.subscriptions.insert(wanted.name.clone(), subscription);
        self.retain_as_configured(&wanted.name);
        Ok(wanted)
    }

    fn check_dead_letter_topic(&self, wanted: &proto::Subscription) -> Result<(), Refusal> {
        let Some(policy) = &wanted.dead_letter_policy else {
            return Ok(());
        };
        name::check(Kind::Topic, &policy.dead_letter_topic)?;
        if self.topics.contains_key(&policy.dead_letter_topic) {
            Ok(())
        } else {
            Err(Refusal::DeadLetterTopicMissing {
                id: name::id(&policy.dead_letter_topic),
            })
        }
    }

    /// Takes over the retention of a subscription and its topic.
    pub(super) fn retain_as_configured(&mut self, name: &str) {
        let Some(subscription) = self.subscriptions.get_mut(name) else {
            return;
        };
        let of_topic = self
            .topics
            .get(&subscription.config.topic)
            .and_then(|t| t.retention());
        let own = subscription.config.message_retention_duration.as_ref();
        let own = own.and_then(from_proto_duration).unwrap_or_default();
        subscription.retention = own.max(of_topic.unwrap_or_default());
        subscription.config.topic_message_retention_duration =
            of_topic.map(crate::time::to_proto_duration);
        subscription
            .backlog
            .retain_acked(subscription.config.retain_acked_messages);
        self.refresh(name);
    }

    /// A subscription as stored.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn subscription(&mut self, now: Time, name: &str) -> Result<proto::Subscription, Refusal> {
        let now = self.clock(now);
        self.on(now, name, |subscription, _| subscription.config.clone())
    }

    /// Changes the fields of a subscription that the mask names; open streams see it at once.
    ///
    /// # Errors
    ///
    /// When the subscription is missing, the mask empty, a field unknown or fixed at creation, or a
    /// value not allowed.
    pub fn update_subscription(
        &mut self,
        now: Time,
        request: UpdateSubscriptionRequest,
    ) -> Result<proto::Subscription, Refusal> {
        const REQUEST: &str = "UpdateSubscriptionRequest";
        let now = self.clock(now);
        let paths = request
            .update_mask
            .map(|mask| mask.paths)
            .unwrap_or_default();
        let Some(wanted) = request.subscription.filter(|_| !paths.is_empty()) else {
            return Err(Refusal::EmptyMask { request: REQUEST });
        };
        let mut changed = self.subscription(now, &wanted.name)?;
        for path in paths {
            apply(REQUEST, &mut changed, &wanted, path)?;
        }
        config::complete(&mut changed)?;
        self.check_dead_letter_topic(&changed)?;
        let config = changed.clone();
        self.on(now, &changed.name, |subscription, _| {
            subscription.config = config
        })?;
        self.retain_as_configured(&changed.name);
        Ok(changed)
    }

    /// Turns a subscription into a push subscription, which is refused, or back, which it is.
    ///
    /// # Errors
    ///
    /// When it does not exist, or the configuration names an endpoint.
    pub fn modify_push_config(
        &mut self,
        now: Time,
        name: &str,
        push: Option<&PushConfig>,
    ) -> Result<(), Refusal> {
        let now = self.clock(now);
        self.on(now, name, |_, _| push.map_or(Ok(()), config::check_push))?
    }

    /// Deletes a subscription with everything it holds; its open streams end with NOT_FOUND.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn delete_subscription(&mut self, now: Time, name: &str) -> Result<(), Refusal> {
        let now = self.clock(now);
        self.on(now, name, |_, _| ())?;
        self.remove_subscription(name);
        Ok(())
    }

    pub(super) fn remove_subscription(&mut self, name: &str) {
        let Some(subscription) = self.subscriptions.remove(name) else {
            return;
        };
        if let Some(topic) = self.topics.get_mut(&subscription.config.topic) {
            topic.subscriptions.remove(name);
        }
        self.numbers.remove(&subscription.number);
        self.arm(subscription.number, None);
        // Their next poll finds the subscription gone.
        self.woken.extend(
            subscription
                .streams
                .keys()
                .map(|number| super::StreamId(*number)),
        );
        let record = self.record.subscription(name);
        record.backlog = 0;
        (record.outstanding, record.outstanding_bytes) = (0, 0);
        record.streams.clear();
    }

    /// Detaches a subscription from its topic: what it holds is dropped, and pulling is refused.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn detach_subscription(&mut self, now: Time, name: &str) -> Result<(), Refusal> {
        let now = self.clock(now);
        let topic = self.on(now, name, |subscription, _| {
            subscription.config.detached = true;
            for freed in subscription.backlog.clear() {
                subscription.free(Some(freed));
            }
            subscription.end_streams(&Refusal::Detached);
            subscription.config.topic.clone()
        })?;
        if let Some(topic) = self.topics.get_mut(&topic) {
            topic.subscriptions.remove(name);
        }
        Ok(())
    }

    /// A page of a project's subscriptions, and the next page's token.
    ///
    /// # Errors
    ///
    /// When the project's name, the size or the token is not allowed.
    pub fn list_subscriptions(
        &self,
        project: &str,
        size: i32,
        token: &str,
    ) -> Result<(Vec<proto::Subscription>, String), Refusal> {
        name::check_project(project)?;
        let prefix = format!("{project}/subscriptions/");
        let names = self
            .subscriptions
            .keys()
            .filter(|name| name.starts_with(&prefix));
        let (names, next) = page(names, size, token)?;
        let there = names.iter().filter_map(|name| self.subscriptions.get(name));
        Ok((
            there
                .map(|subscription| subscription.config.clone())
                .collect(),
            next,
        ))
    }

    /// Whether a subscription's topic is there to seek in.
    pub(super) fn topic_of(&self, subscription: &str) -> Option<String> {
        let topic = &self.subscriptions.get(subscription)?.config.topic;
        (topic != DELETED).then(|| topic.clone())
    }
}

/// Takes over one field of an update.
fn apply(
    request: &'static str,
    into: &mut proto::Subscription,
    from: &proto::Subscription,
    path: String,
) -> Result<(), Refusal> {
    const RESOURCE: &str = "Subscription";
    match path.as_str() {
        "ack_deadline_seconds" => into.ack_deadline_seconds = from.ack_deadline_seconds,
        "retain_acked_messages" => into.retain_acked_messages = from.retain_acked_messages,
        "message_retention_duration" => {
            into.message_retention_duration = from.message_retention_duration;
        }
        "labels" => into.labels.clone_from(&from.labels),
        "expiration_policy" | "expiration_policy.ttl" => {
            into.expiration_policy = from.expiration_policy;
        }
        "dead_letter_policy" => into.dead_letter_policy.clone_from(&from.dead_letter_policy),
        "dead_letter_policy.dead_letter_topic" => {
            let given = from.dead_letter_policy.clone().unwrap_or_default();
            into.dead_letter_policy
                .get_or_insert_default()
                .dead_letter_topic = given.dead_letter_topic;
        }
        "dead_letter_policy.max_delivery_attempts" => {
            let given = from.dead_letter_policy.clone().unwrap_or_default();
            into.dead_letter_policy
                .get_or_insert_default()
                .max_delivery_attempts = given.max_delivery_attempts;
        }
        "retry_policy" => into.retry_policy = from.retry_policy,
        "retry_policy.minimum_backoff" => {
            into.retry_policy.get_or_insert_default().minimum_backoff =
                from.retry_policy.and_then(|policy| policy.minimum_backoff);
        }
        "retry_policy.maximum_backoff" => {
            into.retry_policy.get_or_insert_default().maximum_backoff =
                from.retry_policy.and_then(|policy| policy.maximum_backoff);
        }
        "push_config" => into.push_config.clone_from(&from.push_config),
        "bigquery_config" => into.bigquery_config.clone_from(&from.bigquery_config),
        "cloud_storage_config" => into
            .cloud_storage_config
            .clone_from(&from.cloud_storage_config),
        "enable_exactly_once_delivery" => {
            into.enable_exactly_once_delivery = from.enable_exactly_once_delivery;
        }
        "name" | "topic" | "filter" | "enable_message_ordering" | "detached" => {
            return Err(Refusal::Immutable {
                request,
                resource: RESOURCE,
                path,
            });
        }
        _ => {
            return Err(Refusal::UnknownField {
                request,
                resource: RESOURCE,
                path,
            });
        }
    }
    Ok(())
}
