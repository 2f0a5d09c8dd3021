//! One awaiter per message, and as many workers as requests may be under way.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, stream::FuturesUnordered};
use gcloud_googleapis::pubsub::v1::PubsubMessage;
use gcloud_pubsub::publisher::PublisherConfig;
use load::{Failure, Meter, Publish, Usage, now};

/// One message in so many is timed.
const SAMPLED: u64 = 1000;

pub(crate) async fn run(publish: Publish) -> Result<(), Failure> {
    let base = Usage::now()?;
    let meter = Meter::new(&publish.flags);
    let work = send(publish.clone(), Arc::clone(&meter));
    meter.measure("publish", &publish.flags, base, work).await
}

async fn send(publish: Publish, meter: Arc<Meter>) -> Result<(), Failure> {
    let client = crate::connect(publish.endpoint()?).await?;
    let publisher = client
        .topic(&publish.topic)
        .new_publisher(Some(PublisherConfig {
            workers: publish.in_flight,
            flush_interval: Duration::from_millis(100),
            bundle_size: publish.batch,
            retry_setting: None,
        }));
    let payload = Bytes::from(vec![b'x'; publish.payload_bytes]);
    let most = publish.batch * publish.in_flight;
    let mut under_way = FuturesUnordered::new();
    for number in 0_u64.. {
        if under_way.len() >= most {
            let done: Result<_, Failure> = under_way.next().await.ok_or("nothing is under way")?;
            meter.count(1);
            if let Some(sent) = done? {
                meter.took(tokio::time::Instant::elapsed(&sent));
            }
        }
        let sent = number.is_multiple_of(SAMPLED).then(now);
        let message = PubsubMessage {
            data: payload.clone(),
            ..Default::default()
        };
        let awaiter = publisher.publish(message).await;
        under_way.push(async move {
            awaiter.get().await?;
            Ok(sent)
        });
    }
    Ok(())
}
