//! Its sink, which sends one request at a time, full ones by itself.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Sink, SinkExt as _};
use load::{Failure, Meter, Publish, Usage};
use ya_gcp::pubsub::{ProjectTopicName, PublishConfig, api::PubsubMessage};

pub(crate) async fn run(publish: Publish) -> Result<(), Failure> {
    let base = Usage::now()?;
    let meter = Meter::new(&publish.flags);
    let work = send(publish.clone(), Arc::clone(&meter));
    meter.measure("publish", &publish.flags, base, work).await
}

async fn send(publish: Publish, meter: Arc<Meter>) -> Result<(), Failure> {
    let config = crate::config(publish.endpoint()?);
    let mut client = crate::builder()
        .await?
        .build_pubsub_publisher(config)
        .await?;
    let topic = ProjectTopicName::new("demo-project", "flood");
    let sink = client
        .publish_topic_sink(topic, PublishConfig::new())
        .with_response_sink(Confirmed(meter));
    futures::pin_mut!(sink);
    let payload = Bytes::from(vec![b'x'; publish.payload_bytes]);
    loop {
        let mut message = PubsubMessage::default();
        message.data = payload.clone();
        sink.feed(message).await?;
    }
}

/// Counts what was confirmed.
struct Confirmed(Arc<Meter>);

impl Sink<PubsubMessage> for Confirmed {
    type Error = Infallible;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, _: PubsubMessage) -> Result<(), Infallible> {
        self.0.count(1);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
}
