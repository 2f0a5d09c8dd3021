//! How a source is set up, and what it receives.

use std::{collections::BTreeSet, time::Duration};

use connector_core::{Epoch, Limits};
use gcp_wire::{
    PulledResponse,
    proto::{
        Timestamp,
        pubsub::{
            PubsubMessage, ReceivedMessage, StreamingPullResponse,
            streaming_pull_response::SubscriptionProperties,
        },
    },
};
use prost::Message as _;

use super::{Host, Setup, Twice, now};
use crate::{
    fuzzing::{operation::Odd, subscription},
    handout::HandOut,
    machine::{AckIds, Machine, MessageKey, Restoration, RestoredGroup, RestoredHeld, Unfinished},
    on_drop::OnDrop,
    settings::Settings,
    state::SavedDeliveries,
};

/// When a message of this number was published, in seconds: later ones later.
fn published(number: u8) -> i64 {
    1_700_000_000 + i64::from(number)
}

fn settings(setup: Setup) -> Settings {
    let defaults = Settings::default();
    Settings {
        streams: 1 + usize::from(setup.two_streams && !setup.ordering),
        outstanding: if setup.tight {
            20
        } else {
            defaults.outstanding
        },
        first_outstanding: if setup.tight {
            5
        } else {
            defaults.first_outstanding
        },
        buffer: if setup.tight {
            Limits::new(8, 200)
        } else {
            defaults.buffer
        },
        seen_limit: if setup.tight { 4 } else { defaults.seen_limit },
        saved_deliveries: match (setup.saves_nothing, setup.saves_ack_ids) {
            (true, _) => SavedDeliveries::Nothing,
            (false, true) => SavedDeliveries::AckIds,
            (false, false) => SavedDeliveries::MessageIds,
        },
        confirm_acks: setup.confirms.then_some(Duration::from_secs(20)),
        on_drop: match setup.on_drop % 4 {
            0 => None,
            1 => Some(OnDrop::Release),
            2 => Some(OnDrop::Lapse),
            _ => Some(OnDrop::ReleaseAfter(Duration::from_secs(30))),
        },
        message_ordering: setup.ordering,
        ..defaults
    }
}

fn restoration(setup: Setup) -> Restoration {
    if setup.restored == 0 && setup.unfinished == 0 {
        return Restoration::default();
    }
    let keys: Vec<_> = (0..setup.restored % 16)
        .map(|number| MessageKey::Number(number.into()))
        .collect();
    let mut ack_ids = AckIds::default();
    for number in 0..keys.len() {
        assert!(ack_ids.push(format!("restored-{number}").as_bytes()));
    }
    let group = RestoredGroup {
        ids: keys.clone(),
        published_by: published(setup.restored) * 1_000_000_000,
        remaining: None,
        held: setup.held.then_some(RestoredHeld {
            keys,
            ack_ids,
            lease_left: Duration::from_secs(20),
        }),
    };
    let unfinished = (0..setup.unfinished % 4).map(|number| Unfinished {
        key: MessageKey::Number((16 + number).into()),
        published: published(16 + number) * 1_000_000_000,
        records: 2,
        remaining: Duration::from_secs(60),
    });
    Restoration {
        epoch: Some(Epoch::new(3)),
        groups: vec![group],
        unfinished: unfinished.collect(),
        ..Restoration::default()
    }
}

pub(super) fn response(first: u8, count: u8, key: u8, odd: Odd) -> PulledResponse {
    let received = (0..count).map(|index| {
        let number = first.wrapping_add(index);
        let id = if odd.texts {
            format!("text-{number}")
        } else {
            number.to_string()
        };
        let seconds = odd.published.unwrap_or_else(|| published(number));
        let message = PubsubMessage {
            data: vec![number; usize::from(number % 40)].into(),
            message_id: id,
            publish_time: (!odd.empty).then_some(Timestamp { seconds, nanos: 0 }),
            ordering_key: ["", "a", "b", "c"][usize::from(key % 4)].to_owned(),
            ..PubsubMessage::default()
        };
        ReceivedMessage {
            ack_id: match odd.ack_id {
                None => format!("{first}-{count}-{number}"),
                Some(true) => "the same".to_owned(),
                Some(false) => String::new(),
            },
            message: (!odd.empty || number % 3 != 0).then_some(message),
            delivery_attempt: odd.attempt.into(),
        }
    });
    let known = odd.exactly_once.is_some() || odd.ordered.is_some();
    let response = StreamingPullResponse {
        received_messages: received.collect(),
        subscription_properties: known.then(|| SubscriptionProperties {
            exactly_once_delivery_enabled: odd.exactly_once.unwrap_or_default(),
            message_ordering_enabled: odd.ordered.unwrap_or_default(),
        }),
        ..StreamingPullResponse::default()
    };
    let decoded = PulledResponse::decode(response.encode_to_vec().into());
    decoded.expect("what is encoded is decoded")
}

impl Host {
    pub(in crate::fuzzing) fn new(setup: Setup, mistake: Option<Twice>) -> Self {
        let (settings, now) = (settings(setup), now());
        let restoration = restoration(setup);
        let epoch = restoration.epoch.map(Epoch::get);
        let mut machine = Machine::new(now, subscription(), "fuzzed".into(), settings, restoration);
        machine.check_invariants();
        machine.start(now);
        machine.check_invariants();
        Self {
            mistake,
            machine,
            out: HandOut::default(),
            now,
            streams: Vec::new(),
            calls: Vec::new(),
            handed: BTreeSet::new(),
            settles: BTreeSet::new(),
            commits: BTreeSet::new(),
            epoch,
            restored_told: false,
        }
    }
}
