//! The shop: publishes the orders of a run.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use gcp_wire::Connection;
use gcp_wire::method::PUBLISH;
use gcp_wire::names::TopicName;
use gcp_wire::proto::pubsub::{PublishRequest, PubsubMessage};

use super::error::OrdersError;
use super::workload;

/// The most messages one publish request may carry (the service's limit).
const BATCH: usize = 1000;

const PUBLISH_DEADLINE: Duration = Duration::from_secs(30);

/// What is known of an order that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedOrder {
    pub(crate) event_id: String,
    pub(crate) customer: String,
}

/// The orders of `seed`, as messages with what is expected of each.
pub(crate) fn place(
    seed: u64,
    count: usize,
    now: SystemTime,
) -> Result<(Vec<PlacedOrder>, Vec<Bytes>), OrdersError> {
    let mut placed = Vec::with_capacity(count);
    let mut messages = Vec::with_capacity(count);
    for order in workload::orders(seed, count, now) {
        messages.push(
            serde_json::to_vec(&order)
                .map_err(OrdersError::Encode)?
                .into(),
        );
        placed.push(PlacedOrder {
            event_id: order.event_id,
            customer: order.customer,
        });
    }
    Ok((placed, messages))
}

/// Publishes each message once.
///
/// Nothing is sent a second time: a publish whose answer was lost may have been stored, and then
/// the run's own input would hold an order twice. Such a failure ends the run instead.
pub(crate) async fn publish(
    connection: Connection,
    topic: TopicName,
    messages: Vec<Bytes>,
    rate: Option<u32>,
) -> Result<(), OrdersError> {
    // At a rate, what is published each time is a tenth of a second's worth.
    let a_tenth = rate.map(|rate| {
        usize::try_from(rate.div_ceil(10))
            .unwrap_or(BATCH)
            .min(BATCH)
    });
    let size = a_tenth.unwrap_or(BATCH);
    let each = rate.map(|rate| Duration::from_secs_f64(size as f64 / f64::from(rate)));
    let mut pace = each.map(tokio::time::interval);
    for batch in messages.chunks(size) {
        if let Some(pace) = &mut pace {
            pace.tick().await;
        }
        let message = |data: &Bytes| PubsubMessage {
            data: data.clone(),
            ..<_>::default()
        };
        let request = PublishRequest {
            topic: topic.to_string(),
            messages: batch.iter().map(message).collect(),
        };
        connection
            .call(&PUBLISH, topic.as_str(), request, PUBLISH_DEADLINE)
            .await
            .map_err(|source| OrdersError::Publish {
                topic: topic.clone(),
                source,
            })?;
    }
    Ok(())
}
