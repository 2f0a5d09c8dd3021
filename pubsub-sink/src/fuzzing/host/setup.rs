//! How a sink is set up.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use connector_core::{Epoch, Limits};
use gcp_wire::TopicName;

use super::super::operation::Setup;
use crate::{
    Delivery, MissingTopics, PublishMessage, TopicCreation,
    machine::Resumed,
    message,
    settings::Settings,
    staged::{Minting, Quarantined, Staged},
};

pub(super) fn topic(number: u8) -> TopicName {
    let name = format!("projects/demo/topics/topic-{}", number % 4);
    name.parse().expect("it is a topic's name")
}

pub(super) fn key(number: u8) -> &'static str {
    ["", "", "a", "b"][usize::from(number % 4)]
}

pub(super) fn settings(setup: Setup) -> Settings {
    let seconds = Duration::from_secs;
    let defaults = Settings::default();
    let creation = TopicCreation::default().attempts(NonZeroU32::MIN.saturating_add(2));
    Settings {
        delivery: if setup.staged {
            Delivery::Staged
        } else {
            Delivery::Flush
        },
        ordering: setup.ordering,
        missing_topics: if setup.creates_topics {
            MissingTopics::Create(creation)
        } else {
            MissingTopics::End
        },
        linger: if setup.linger {
            Duration::from_millis(100)
        } else {
            Duration::ZERO
        },
        batch_messages: if setup.tight {
            3
        } else {
            defaults.batch_messages
        },
        batch_bytes: if setup.tight {
            120
        } else {
            defaults.batch_bytes
        },
        in_flight: if setup.tight { 1 } else { 3 },
        max_destinations: if setup.tight {
            2
        } else {
            defaults.max_destinations
        },
        stage: if setup.tight {
            Limits::new(4, 400)
        } else {
            defaults.stage
        },
        quarantine: if setup.tight {
            Limits::new(2, 200)
        } else {
            defaults.quarantine
        },
        idle_destinations: seconds(20),
        progress_timeout: seconds(120),
        destination_stats: 2,
        max_consecutive_rejections: NonZeroU32::new(5),
        ..defaults
    }
}

/// What a state left to do.
pub(super) fn resumed(setup: Setup) -> Option<Resumed> {
    if !setup.staged || setup.restored == 0 {
        return None;
    }
    let mut minting = Minting::new(7);
    let message = |number: u8| message::encode_alone(&PublishMessage::new(vec![number; 5]));
    let messages = (0..setup.restored % 8).map(|number| {
        let read = Staged::read(minting.mint(), topic(number), &message(number));
        Arc::new(read.expect("it was just encoded"))
    });
    let messages = messages.collect();
    let quarantined = (0..setup.aside % 4).map(|number| {
        Arc::new(Quarantined {
            identity: minting.mint(),
            topic: topic(number),
            message: message(number),
            reason: "no".to_owned(),
        })
    });
    let quarantined = quarantined.collect();
    Some(Resumed {
        epoch: Epoch::new(3),
        messages,
        quarantined,
    })
}
