//! The parts of a source, put together.

use std::{collections::BTreeMap, sync::Arc};

use gcp_wire::{Connection, ConnectionOptions, SubscriptionName};

use super::SourceBuilder;
use crate::{
    delivery::DeliveryId,
    driver::{self, Driver, Fate, Parts},
    error::BuildError,
    instance::instance,
    machine::{Machine, Restoration},
    settings::Settings,
    shared::{Seat, Shared},
    source::{Pool, PubsubSource},
    split::SplitReader,
};

/// Pull streams that share a connection: each carries up to about 10 MB/s.
const STREAMS_PER_CONNECTION: usize = 4;

/// Subscriptions whose requests share a connection: each has at most 24 under way, and a connection
/// takes 100.
const SPLITS_PER_CONNECTION: usize = 4;

/// As many as `gcp-wire` takes for one pool. More streams and splits share these: each still has
/// room for 50 streams.
const MOST_CONNECTIONS: usize = 256;

/// Builds a source from its settings.
pub(super) fn assemble(builder: SourceBuilder) -> Result<(PubsubSource, Driver), BuildError> {
    let splits = settings_of_each(&builder)?;
    let instance = instance(builder.instance, splits.keys())?;
    let streams: usize = splits.values().map(|settings| settings.streams).sum();
    let options = ConnectionOptions::default();
    let pulls = Connection::pull(
        builder.endpoint.clone(),
        builder.credentials.clone(),
        streams,
        options
            .clone()
            .channels(connections(streams, STREAMS_PER_CONNECTION)),
    )?;
    let endpoint = builder.endpoint.to_string();
    let calls = Connection::unary(
        builder.endpoint,
        builder.credentials,
        options.channels(connections(splits.len(), SPLITS_PER_CONNECTION)),
    )?;
    let fate = Fate::new();
    let (bound, paused) = (builder.settings.buffer, builder.settings.paused_limit());
    let pool = match builder.budget {
        Some(budget) => Pool::sharing(bound, paused, splits.len(), budget, Arc::clone(&instance)),
        None => Pool::new(bound, paused, splits.len()),
    };
    let (mut readers, mut parts) = (Vec::new(), Vec::new());
    for (split, (subscription, settings)) in splits.into_iter().enumerate() {
        let restoration = Restoration::of(
            &subscription,
            &instance,
            builder.sought,
            &builder.restored,
            settings.saved_deliveries,
            builder.wall.now(),
        )?;
        let client_ids = (0..settings.streams)
            .map(|_| uuid::Uuid::new_v4().to_string())
            .collect();
        let machine = Machine::new(
            driver::now(),
            subscription.clone(),
            Arc::clone(&instance),
            settings,
            restoration,
        );
        let pool = Arc::clone(&pool);
        let shared = Shared::new(machine, Seat { pool, split });
        readers.push(SplitReader::new(Arc::clone(&shared), subscription.clone()));
        parts.push(Parts {
            shared,
            fate: fate.clone(),
            subscription,
            endpoint: endpoint.clone(),
            pulls: pulls.clone(),
            calls: calls.clone(),
            client_ids,
        });
    }
    let source = PubsubSource::new(
        readers,
        builder.settings.close_budget,
        builder.decode_failure,
        builder.wall,
    );
    Ok((source, Driver::new(parts)))
}

/// The settings for each subscription. Splits of one are read as one, with the streams of all.
fn connections(users: usize, of_one: usize) -> usize {
    users.div_ceil(of_one).min(MOST_CONNECTIONS)
}

fn settings_of_each(
    builder: &SourceBuilder,
) -> Result<BTreeMap<SubscriptionName, Settings>, BuildError> {
    let mut splits: BTreeMap<SubscriptionName, usize> = BTreeMap::new();
    for split in &builder.splits {
        *splits.entry(split.clone()).or_default() += 1;
    }
    if splits.is_empty() || splits.len() > DeliveryId::MAX_SPLITS {
        return Err(BuildError::Setting {
            setting: "the number of subscriptions",
            found: splits.len().to_string(),
            allowed: "1 to 4096",
        });
    }
    // As they were given first, so that a message names what was written.
    builder.settings.check()?;
    let mut each = BTreeMap::new();
    for (subscription, count) in splits {
        if builder.settings.message_ordering && count > 1 {
            return Err(BuildError::Contradiction {
                first: "message_ordering",
                first_value: "true".to_owned(),
                second: "the number of splits of one subscription",
                second_value: count.to_string(),
                rule: "the order of keys holds on one stream only, so a subscription has to be one split: make the plan with SplitPlan::ordered",
            });
        }
        let settings = Settings {
            streams: builder.settings.streams.saturating_mul(count),
            ..builder.settings.clone()
        };
        settings.check()?;
        each.insert(subscription, settings);
    }
    Ok(each)
}
