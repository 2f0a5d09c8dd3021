//! Creating, changing and listing topics.

use super::name::{self, Kind};
use super::topic::Topic;
use super::{PubsubState, Refusal, config};
use crate::page::page;
use crate::pubsub::proto::{self, UpdateTopicRequest};
use crate::time::Time;

/// What a subscription's `topic` says once the topic is deleted (interface definition).
pub(super) const DELETED: &str = "_deleted-topic_";

impl PubsubState {
    /// Creates a topic and returns it as stored.
    ///
    /// # Errors
    ///
    /// When it exists, when its name or retention is not allowed, or when it asks for what is not
    /// served: schemas, ingestion, message transforms.
    pub fn create_topic(
        &mut self,
        now: Time,
        mut topic: proto::Topic,
    ) -> Result<proto::Topic, Refusal> {
        self.clock(now);
        name::check(Kind::Topic, &topic.name)?;
        config::check_topic(&topic)?;
        if self.topics.contains_key(&topic.name) {
            return Err(Refusal::Exists {
                id: name::id(&topic.name),
            });
        }
        topic.state = proto::topic::State::Active.into();
        self.record.topic(&topic.name);
        self.topics
            .insert(topic.name.clone(), Topic::new(topic.clone()));
        Ok(topic)
    }

    /// A topic as stored.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn topic(&self, name: &str) -> Result<proto::Topic, Refusal> {
        name::check(Kind::Topic, name)?;
        self.topics
            .get(name)
            .map(|topic| topic.config.clone())
            .ok_or_else(|| Refusal::Missing { id: name::id(name) })
    }

    /// Changes the fields of a topic that the mask names.
    ///
    /// # Errors
    ///
    /// When the topic is missing, the mask empty or with an unknown field, or a value not allowed.
    pub fn update_topic(
        &mut self,
        now: Time,
        request: UpdateTopicRequest,
    ) -> Result<proto::Topic, Refusal> {
        const REQUEST: &str = "UpdateTopicRequest";
        self.clock(now);
        let paths = request
            .update_mask
            .map(|mask| mask.paths)
            .unwrap_or_default();
        let Some(wanted) = request.topic.filter(|_| !paths.is_empty()) else {
            return Err(Refusal::EmptyMask { request: REQUEST });
        };
        let mut topic = self.topic(&wanted.name)?;
        for path in paths {
            match path.as_str() {
                "labels" => topic.labels.clone_from(&wanted.labels),
                "message_storage_policy" => {
                    topic
                        .message_storage_policy
                        .clone_from(&wanted.message_storage_policy);
                }
                "kms_key_name" => topic.kms_key_name.clone_from(&wanted.kms_key_name),
                "message_retention_duration" => {
                    topic.message_retention_duration = wanted.message_retention_duration;
                }
                "schema_settings" => topic.schema_settings.clone_from(&wanted.schema_settings),
                "ingestion_data_source_settings" => {
                    topic
                        .ingestion_data_source_settings
                        .clone_from(&wanted.ingestion_data_source_settings);
                }
                "message_transforms" => {
                    topic
                        .message_transforms
                        .clone_from(&wanted.message_transforms);
                }
                _ => {
                    return Err(Refusal::UnknownField {
                        request: REQUEST,
                        resource: "Topic",
                        path,
                    });
                }
            }
        }
        config::check_topic(&topic)?;
        let listeners = match self.topics.get_mut(&topic.name) {
            Some(there) => {
                there.config = topic.clone();
                there.subscriptions.iter().cloned().collect::<Vec<_>>()
            }
            None => Vec::new(),
        };
        for listener in listeners {
            self.retain_as_configured(&listener);
        }
        Ok(topic)
    }

    /// Deletes a topic. Its subscriptions stay, with what they hold, and name no topic any more.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn delete_topic(&mut self, now: Time, name: &str) -> Result<(), Refusal> {
        self.clock(now);
        name::check(Kind::Topic, name)?;
        let Some(topic) = self.topics.remove(name) else {
            return Err(Refusal::Missing { id: name::id(name) });
        };
        for listener in &topic.subscriptions {
            if let Some(subscription) = self.subscriptions.get_mut(listener) {
                DELETED.clone_into(&mut subscription.config.topic);
            }
        }
        Ok(())
    }

    /// A page of a project's topics, and the next page's token.
    ///
    /// # Errors
    ///
    /// When the project's name, the size or the token is not allowed.
    pub fn list_topics(
        &self,
        project: &str,
        size: i32,
        token: &str,
    ) -> Result<(Vec<proto::Topic>, String), Refusal> {
        name::check_project(project)?;
        let prefix = format!("{project}/topics/");
        let names = self.topics.keys().filter(|name| name.starts_with(&prefix));
        let (names, next) = page(names, size, token)?;
        let topics = names.iter().filter_map(|name| self.topics.get(name));
        Ok((topics.map(|topic| topic.config.clone()).collect(), next))
    }

    /// A page of the names of a topic's subscriptions, and the next page's token.
    ///
    /// # Errors
    ///
    /// When the topic is missing, or the size or the token is not allowed.
    pub fn list_topic_subscriptions(
        &self,
        topic: &str,
        size: i32,
        token: &str,
    ) -> Result<(Vec<String>, String), Refusal> {
        name::check(Kind::Topic, topic)?;
        let Some(there) = self.topics.get(topic) else {
            return Err(Refusal::Missing {
                id: name::id(topic),
            });
        };
        Ok(page(there.subscriptions.iter(), size, token)?)
    }
}
