//! Snapshots of a subscription's backlog.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::backlog::Stage;
use super::message::Stored;
use super::name::{self, Kind};
use super::{PubsubState, Refusal};
use crate::page::page;
use crate::pubsub::proto::{self, CreateSnapshotRequest, UpdateSnapshotRequest};
use crate::time::Time;

/// A snapshot lives for seven days less the age of the oldest message it holds, and one that would
/// live for less than an hour is refused (interface definition of `Snapshot`).
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
const SHORTEST: Duration = Duration::from_secs(3600);

/// What a subscription had not acknowledged at a moment, and what its topic got since.
#[derive(Debug)]
pub(super) struct Snapshot {
    config: proto::Snapshot,
    pub(super) topic: String,
    expires_at: Time,
    /// By sequence number.
    pub(super) unacked: BTreeMap<u64, Arc<Stored>>,
}

impl Snapshot {
    pub(super) fn offer(&mut self, topic: &str, stored: &[Arc<Stored>]) {
        if self.topic == topic {
            self.unacked
                .extend(stored.iter().map(|one| (one.seq, Arc::clone(one))));
        }
    }
}

impl PubsubState {
    /// Takes a snapshot of a subscription's backlog.
    ///
    /// # Errors
    ///
    /// When the name is taken or malformed, the subscription is missing or detached, or its backlog
    /// is so old that the snapshot would expire within an hour.
    pub fn create_snapshot(
        &mut self,
        now: Time,
        request: CreateSnapshotRequest,
    ) -> Result<proto::Snapshot, Refusal> {
        let now = self.clock(now);
        name::check(Kind::Snapshot, &request.name)?;
        self.expire_snapshots(now);
        if self.snapshots.contains_key(&request.name) {
            return Err(Refusal::Exists {
                id: name::id(&request.name),
            });
        }
        let (topic, unacked) = self.on(now, &request.subscription, |subscription, _| {
            if subscription.config.detached {
                return Err(Refusal::Detached);
            }
            let unacked: BTreeMap<u64, Arc<Stored>> = subscription
                .backlog
                .entries()
                .filter(|entry| !matches!(entry.stage, Stage::Held | Stage::Retained))
                .map(|entry| (entry.stored.seq, Arc::clone(&entry.stored)))
                .collect();
            Ok((subscription.config.topic.clone(), unacked))
        })??;
        let oldest = unacked.values().next().map_or(now, |stored| stored.at);
        let left = LIFETIME.saturating_sub(now.since(oldest));
        if left < SHORTEST {
            return Err(Refusal::SnapshotTooShort);
        }
        let expires_at = now + left;
        let config = proto::Snapshot {
            name: request.name,
            topic: topic.clone(),
            expire_time: Some(expires_at.to_timestamp()),
            labels: request.labels,
        };
        let name = config.name.clone();
        let snapshot = Snapshot {
            config: config.clone(),
            topic,
            expires_at,
            unacked,
        };
        self.snapshots.insert(name, snapshot);
        Ok(config)
    }

    /// A snapshot as stored.
    ///
    /// # Errors
    ///
    /// When it does not exist (any more).
    pub fn snapshot(&mut self, now: Time, name: &str) -> Result<proto::Snapshot, Refusal> {
        let now = self.clock(now);
        self.live_snapshot(now, name)
            .map(|snapshot| snapshot.config.clone())
    }

    /// Changes the labels of a snapshot.
    ///
    /// # Errors
    ///
    /// When it is missing, or the mask is empty or names anything but `labels`.
    pub fn update_snapshot(
        &mut self,
        now: Time,
        request: UpdateSnapshotRequest,
    ) -> Result<proto::Snapshot, Refusal> {
        const REQUEST: &str = "UpdateSnapshotRequest";
        let now = self.clock(now);
        let paths = request
            .update_mask
            .map(|mask| mask.paths)
            .unwrap_or_default();
        let Some(wanted) = request.snapshot.filter(|_| !paths.is_empty()) else {
            return Err(Refusal::EmptyMask { request: REQUEST });
        };
        for path in paths {
            match path.as_str() {
                "labels" => {}
                "name" | "topic" | "expire_time" => {
                    let resource = "Snapshot";
                    return Err(Refusal::Immutable {
                        request: REQUEST,
                        resource,
                        path,
                    });
                }
                _ => {
                    let resource = "Snapshot";
                    return Err(Refusal::UnknownField {
                        request: REQUEST,
                        resource,
                        path,
                    });
                }
            }
        }
        let snapshot = self.live_snapshot(now, &wanted.name)?;
        snapshot.config.labels = wanted.labels;
        Ok(snapshot.config.clone())
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn delete_snapshot(&mut self, now: Time, name: &str) -> Result<(), Refusal> {
        let now = self.clock(now);
        self.live_snapshot(now, name)?;
        self.snapshots.remove(name);
        Ok(())
    }

    /// A page of a project's snapshots, and the next page's token.
    ///
    /// # Errors
    ///
    /// When the project's name, the size or the token is not allowed.
    pub fn list_snapshots(
        &mut self,
        now: Time,
        project: &str,
        size: i32,
        token: &str,
    ) -> Result<(Vec<proto::Snapshot>, String), Refusal> {
        let now = self.clock(now);
        name::check_project(project)?;
        self.expire_snapshots(now);
        let prefix = format!("{project}/snapshots/");
        let names = self
            .snapshots
            .keys()
            .filter(|name| name.starts_with(&prefix));
        let (names, next) = page(names, size, token)?;
        let there = names.iter().filter_map(|name| self.snapshots.get(name));
        Ok((
            there.map(|snapshot| snapshot.config.clone()).collect(),
            next,
        ))
    }

    /// A page of the names of a topic's snapshots, and the next page's token.
    ///
    /// # Errors
    ///
    /// When the topic is missing, or the size or the token is not allowed.
    pub fn list_topic_snapshots(
        &mut self,
        now: Time,
        topic: &str,
        size: i32,
        token: &str,
    ) -> Result<(Vec<String>, String), Refusal> {
        let now = self.clock(now);
        self.topic(topic)?;
        self.expire_snapshots(now);
        let of_topic = self
            .snapshots
            .values()
            .filter(|snapshot| snapshot.topic == topic);
        Ok(page(
            of_topic.map(|snapshot| &snapshot.config.name),
            size,
            token,
        )?)
    }

    pub(super) fn live_snapshot(
        &mut self,
        now: Time,
        name: &str,
    ) -> Result<&mut Snapshot, Refusal> {
        name::check(Kind::Snapshot, name)?;
        self.expire_snapshots(now);
        self.snapshots
            .get_mut(name)
            .ok_or_else(|| Refusal::Missing { id: name::id(name) })
    }

    fn expire_snapshots(&mut self, now: Time) {
        self.snapshots
            .retain(|_, snapshot| snapshot.expires_at > now);
    }
}
