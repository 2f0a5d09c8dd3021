//! So many loops that publish one request after the other.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    PublishRequest, PubsubMessage, publisher_client::PublisherClient,
};
use load::{Failure, Meter, Publish, Usage, now};
use tonic::transport::Channel;

pub(crate) async fn run(publish: Publish) -> Result<(), Failure> {
    let base = Usage::now()?;
    let meter = Meter::new(&publish.flags);
    let work = loops(publish.clone(), Arc::clone(&meter));
    meter.measure("publish", &publish.flags, base, work).await
}

#[expect(
    clippy::disallowed_methods,
    reason = "a loop without logic: its end ends the measurement"
)]
async fn loops(publish: Publish, meter: Arc<Meter>) -> Result<(), Failure> {
    let channel = crate::connect(publish.endpoint()?).await?;
    let loops = (0..publish.in_flight).map(|_| {
        let one = one(channel.clone(), publish.clone(), Arc::clone(&meter));
        tokio::spawn(one)
    });
    for ended in try_join_all(loops).await? {
        ended?;
    }
    Ok(())
}

async fn one(channel: Channel, publish: Publish, meter: Arc<Meter>) -> Result<(), Failure> {
    let mut client = PublisherClient::new(channel);
    let payload = Bytes::from(vec![b'x'; publish.payload_bytes]);
    loop {
        let message = || PubsubMessage {
            data: payload.clone(),
            ..Default::default()
        };
        let request = PublishRequest {
            topic: publish.topic.clone(),
            messages: (0..publish.batch).map(|_| message()).collect(),
        };
        let sent = now();
        let response = client.publish(request).await?.into_inner();
        meter.count(response.message_ids.len() as u64);
        meter.took(sent.elapsed());
    }
}
