//! One subscriber, and acknowledgements of 1,000 ids.

use std::{hint::black_box, sync::Arc};

use futures::StreamExt as _;
use gcloud_pubsub::{
    subscriber::SubscriberConfig,
    subscription::{SubscribeConfig, Subscription},
};
use load::{Cuts, Failure, Meter, Receive, Usage, now, number};

pub(crate) async fn run(receive: Receive) -> Result<(), Failure> {
    let base = Usage::now()?;
    let meter = Meter::new(&receive.flags);
    let work = pull(receive.clone(), Arc::clone(&meter));
    meter.measure("receive", &receive.flags, base, work).await
}

async fn pull(receive: Receive, meter: Arc<Meter>) -> Result<(), Failure> {
    let client = crate::connect(receive.endpoint()?).await?;
    let subscription = client.subscription(&receive.subscription);
    let config = SubscriberConfig {
        max_outstanding_messages: receive.outstanding.into(),
        max_outstanding_bytes: 1_000_000_000,
        ..SubscriberConfig::default()
    };
    let config = SubscribeConfig::default().with_subscriber_config(config);
    let mut messages = subscription.subscribe(Some(config)).await?;
    let mut cuts = Cuts::new(receive.every());
    loop {
        let next = tokio::select! {
            biased;
            ids = cuts.due(), if cuts.timed() => {
                acknowledge(&subscription, ids, &meter);
                continue;
            }
            next = messages.next() => next,
        };
        let message = next.ok_or("the stream ended")?;
        black_box(&message.message);
        meter.count(1);
        cuts.hold(message.ack_id);
        let full = cuts.at_once();
        if !full.is_empty() {
            acknowledge(&subscription, full, &meter);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a loop without logic: what fails is counted"
)]
fn acknowledge(subscription: &Subscription, requests: Vec<Vec<String>>, meter: &Arc<Meter>) {
    meter.held(number(&requests));
    let (subscription, meter) = (subscription.clone(), Arc::clone(meter));
    tokio::spawn(async move {
        let sent = now();
        for ids in requests {
            if !ids.is_empty() && subscription.ack(ids).await.is_err() {
                meter.failed();
            }
        }
        meter.took(sent.elapsed());
    });
}
