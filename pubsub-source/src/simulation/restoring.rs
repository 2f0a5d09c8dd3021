//! A process starts, from the newest state that was ever durable.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{bugs::Bug, client::Client, server::SUBSCRIPTION, world::World};
use crate::{
    machine::{MessageKey, Restoration, RestoredGroup},
    state::SavedDeliveries,
};

/// The time of day, which runs with the simulation, so many milliseconds ahead.
pub(super) fn wall(now: Duration, ahead: u64) -> SystemTime {
    UNIX_EPOCH + now + Duration::from_millis(ahead)
}

impl World {
    pub(super) fn restart(&mut self) {
        if self.client.is_some() {
            return;
        }
        let at = self.base + self.now;
        let (restoration, covered) = self.restoration();
        trace!("{:?} restart from {:?} {restoration:?}", self.now, covered);
        self.incarnations += 1;
        let held: Vec<(String, String)> = restoration.groups.iter().flat_map(held).collect();
        let named = restoration.groups.iter().flat_map(|group| &group.ids);
        let named = named.filter_map(|id| match id {
            MessageKey::Number(id) => self.server.number(&id.to_string()),
            MessageKey::Text(_) => None,
        });
        let named = named.collect();
        let mut client = Client::new(
            self.incarnations,
            self.now,
            at,
            self.settings.clone(),
            restoration,
            covered,
        );
        client.named = named;
        if let Some(saved) = self.truth.newest() {
            client.progress = saved.progress.clone();
            client.unfinished = saved.unfinished.clone();
            client.published = saved.published;
        }
        if self.settings.saved_deliveries == SavedDeliveries::Nothing {
            // Nothing is recognised, so everything may come again.
            client.restored.clear();
            client.unfinished.clear();
        }
        self.chance
            .count_many("an ack id was restored", held.len() as u64);
        for (message, ack_id) in held {
            client.messages.insert(ack_id.clone(), message.clone());
            client.newest.insert(message, ack_id);
        }
        self.client = Some(client);
    }

    fn restoration(&self) -> (Restoration, BTreeSet<u64>) {
        let mut restoration = Restoration::default();
        let Some(saved) = self.truth.newest() else {
            return (restoration, BTreeSet::new());
        };
        restoration.epoch = Some(saved.epoch);
        if self.bug != Some(Bug::RestoreForgets) {
            let subscription = SUBSCRIPTION.parse().unwrap();
            restoration.groups = saved
                .state
                .groups_of(&subscription, wall(self.now, self.wall_ahead));
        }
        if self.bug != Some(Bug::UnfinishedForgotten) {
            restoration.unfinished = saved.state.unfinished_of(&SUBSCRIPTION.parse().unwrap());
        }
        if self.bug != Some(Bug::BehindForgotten) {
            restoration.behind = saved.state.behind_in(&SUBSCRIPTION.parse().unwrap());
        }
        if self.bug == Some(Bug::StateWithoutSettling) {
            for group in &mut restoration.groups {
                group.held = None;
                group.ids.retain(|id| match id {
                    MessageKey::Number(id) => self
                        .server
                        .number(&id.to_string())
                        .is_none_or(|number| !saved.settling.contains(&number)),
                    MessageKey::Text(_) => true,
                });
            }
        }
        (restoration, saved.covered.clone())
    }
}

/// Message id and ack id of each delivery that can be acknowledged at once.
fn held(group: &RestoredGroup) -> Vec<(String, String)> {
    let Some(held) = &group.held else {
        return Vec::new();
    };
    let name = |key: &MessageKey| match key {
        MessageKey::Number(number) => number.to_string(),
        MessageKey::Text(text) => text.to_string(),
    };
    let pairs = held.keys.iter().enumerate();
    let pairs = pairs.map(|(at, key)| {
        let ack_id = std::str::from_utf8(held.ack_ids.get(at)).unwrap();
        (name(key), ack_id.to_owned())
    });
    pairs.collect()
}
