//! One future per message.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, stream::FuturesUnordered};
use google_cloud_pubsub::{client::Publisher, model::Message};
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
    let publisher = Publisher::builder(publish.topic.as_str())
        .with_endpoint(format!("http://{}", publish.endpoint()?))
        .with_credentials(crate::nobody())
        .set_message_count_threshold(u32::try_from(publish.batch)?)
        .set_byte_threshold(10_000_000)
        .set_delay_threshold(Duration::from_millis(100))
        .build()
        .await?;
    let payload = Bytes::from(vec![b'x'; publish.payload_bytes]);
    let most = publish.batch * publish.in_flight;
    let mut under_way = FuturesUnordered::new();
    for number in 0_u64.. {
        if under_way.len() >= most {
            let sent = under_way.next().await.ok_or("nothing is under way")?;
            done(sent, &meter)?;
        }
        let sent = number.is_multiple_of(SAMPLED).then(now);
        let published = publisher.publish(Message::new().set_data(payload.clone()));
        under_way.push(async move { published.await.map(|_| sent) });
    }
    Ok(())
}

fn done<E: Into<Failure>>(
    sent: Result<Option<tokio::time::Instant>, E>,
    meter: &Meter,
) -> Result<(), Failure> {
    let sent = sent.map_err(Into::into)?;
    meter.count(1);
    if let Some(sent) = sent {
        meter.took(sent.elapsed());
    }
    Ok(())
}
