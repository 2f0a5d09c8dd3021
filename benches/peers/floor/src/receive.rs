//! One pull stream, and unary acknowledgements of 1,000 ids.

use std::{hint::black_box, sync::Arc};

use futures::{StreamExt as _, stream};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    AcknowledgeRequest, StreamingPullRequest, subscriber_client::SubscriberClient,
};
use load::{Cuts, Failure, Meter, Receive, Usage, now, number};
use tonic::transport::Channel;

pub(crate) async fn run(receive: Receive) -> Result<(), Failure> {
    let base = Usage::now()?;
    let meter = Meter::new(&receive.flags);
    let work = pull(receive.clone(), Arc::clone(&meter));
    meter.measure("receive", &receive.flags, base, work).await
}

async fn pull(receive: Receive, meter: Arc<Meter>) -> Result<(), Failure> {
    let channel = crate::connect(receive.endpoint()?).await?;
    let mut client = SubscriberClient::new(channel).max_decoding_message_size(64 << 20);
    let first = StreamingPullRequest {
        subscription: receive.subscription.clone(),
        stream_ack_deadline_seconds: 60,
        client_id: "floor".to_owned(),
        max_outstanding_messages: receive.outstanding.into(),
        max_outstanding_bytes: 1_000_000_000,
        ..Default::default()
    };
    let requests = stream::iter([first]).chain(stream::pending());
    let mut responses = client.streaming_pull(requests).await?.into_inner();
    let mut cuts = Cuts::new(receive.every());
    loop {
        let response = tokio::select! {
            biased;
            ids = cuts.due(), if cuts.timed() => {
                acknowledge(&client, &receive.subscription, ids, &meter);
                continue;
            }
            response = responses.message() => response?.ok_or("the stream ended")?,
        };
        meter.count(response.received_messages.len() as u64);
        for received in response.received_messages {
            black_box(&received.message);
            cuts.hold(received.ack_id);
        }
        let full = cuts.at_once();
        if !full.is_empty() {
            acknowledge(&client, &receive.subscription, full, &meter);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a loop without logic: what fails is counted"
)]
fn acknowledge(
    client: &SubscriberClient<Channel>,
    subscription: &str,
    requests: Vec<Vec<String>>,
    meter: &Arc<Meter>,
) {
    meter.held(number(&requests));
    let (mut client, meter) = (client.clone(), Arc::clone(meter));
    let subscription = subscription.to_owned();
    tokio::spawn(async move {
        let sent = now();
        for ack_ids in requests {
            let subscription = subscription.clone();
            let request = AcknowledgeRequest {
                subscription,
                ack_ids,
            };
            if client.acknowledge(request).await.is_err() {
                meter.failed();
            }
        }
        meter.took(sent.elapsed());
    });
}
