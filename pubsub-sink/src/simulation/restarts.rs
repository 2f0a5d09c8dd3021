//! Crashes, and what comes after.

use std::sync::Arc;

use connector_core::Restored;

use super::{
    Violation,
    bugs::Bug,
    client::Client,
    truth::Saved,
    world::{Event, World},
};
use crate::{
    SinkState,
    builder::resumed,
    message,
    staged::{Identity, Staged},
    state::Named,
};

impl World {
    /// The process is gone, and everything in its memory.
    pub(super) fn crash(&mut self) {
        let Some(client) = self.client.take() else {
            return;
        };
        if client.closing.is_none() {
            self.chance.count("a crash");
        }
        // Nobody learns what becomes of these.
        let calls = client.calls.into_values().flat_map(|(_, numbers)| numbers);
        self.truth.excuse(calls);
        if !self.settings.delivery.is_staged() {
            // They come again from the source.
            self.truth
                .excuse(self.truth.newest_position()..client.position);
        }
        let pause = self.chance.millis(10..2_000);
        self.schedule(pause, Event::Restart);
    }

    /// A new process goes on from the newest checkpoint that was ever durable.
    pub(super) fn restart(&mut self) -> Result<(), Violation> {
        self.incarnations += 1;
        let mut restored = Vec::new();
        let mut position = 0;
        if let Some(saved) = self.truth.newest().cloned() {
            position = saved.position;
            let state = self.restored(&saved);
            let settled = saved.settled && self.bug != Some(Bug::MarkIgnored);
            restored.push(Restored::new(saved.epoch, state).settled(settled));
            if saved.settled {
                self.chance.count("a settled state was restored");
            } else if !saved.named().is_empty() {
                self.chance
                    .count("a state that names messages was restored");
                let again = saved.named().into_iter();
                let stored = &self.truth.stored;
                let again: Vec<usize> =
                    again.filter(|number| stored.contains_key(number)).collect();
                self.truth.excuse(again);
            }
            if self.chance.strikes(|rates| rates.twin) {
                self.chance.count("a state was restored twice");
                let twin = self.twin(&saved);
                restored.push(Restored::new(saved.epoch, twin).settled(settled));
            }
        }
        let resumed = resumed("0", self.settings.delivery, &restored);
        let resumed = resumed.map_err(|error| error.to_string())?;
        let settings = self.settings.clone();
        self.client = Some(Client::new(self.incarnations, settings, resumed, position));
        Ok(())
    }

    fn restored(&self, saved: &Saved) -> SinkState {
        let staged = self.settings.delivery.is_staged();
        match self.bug {
            Some(Bug::RestoreForgets) if staged => SinkState::staged(
                "0",
                Named {
                    quarantined: saved.open().kept_aside().to_vec(),
                    ..Named::default()
                },
            ),
            Some(Bug::QuarantineForgotten) if staged => SinkState::staged(
                "0",
                Named {
                    read: saved.open().messages_named().cloned().collect(),
                    ..Named::default()
                },
            ),
            _ => saved.open(),
        }
    }

    fn twin(&self, saved: &Saved) -> SinkState {
        let state = self.restored(saved);
        if self.bug != Some(Bug::TwinsNotRecognised) || !self.settings.delivery.is_staged() {
            return state;
        }
        let strangers = state.messages_named().map(|staged| {
            let identity = Identity {
                incarnation: staged.identity.incarnation ^ (1 << 100),
                sequence: staged.identity.sequence,
            };
            let message = message::inside(&staged.frame().expect("it was just read"));
            let read = Staged::read(identity, staged.topic.clone(), &message);
            Arc::new(read.expect("it was just read"))
        });
        let named = Named {
            read: strangers.collect(),
            ..Named::default()
        };
        SinkState::staged("0", named)
    }
}
