//! One subscription stream, and a token per message, not awaited: it is acknowledged in the
//! background either way.

use std::{hint::black_box, sync::Arc, time::Duration};

use futures::StreamExt as _;
use load::{Cuts, Failure, Meter, Receive, Usage, number};
use ya_gcp::pubsub::{AcknowledgeToken, ProjectSubscriptionName, StreamSubscriptionConfig};

pub(crate) async fn run(receive: Receive) -> Result<(), Failure> {
    let base = Usage::now()?;
    let meter = Meter::new(&receive.flags);
    let work = pull(receive.clone(), Arc::clone(&meter));
    meter.measure("receive", &receive.flags, base, work).await
}

async fn pull(receive: Receive, meter: Arc<Meter>) -> Result<(), Failure> {
    let config = crate::config(receive.endpoint()?);
    let mut client = crate::builder()
        .await?
        .build_pubsub_subscriber(config)
        .await?;
    let config = StreamSubscriptionConfig::new()
        .stream_ack_deadline(Duration::from_secs(60))
        .max_outstanding_messages(receive.outstanding.into())
        .max_outstanding_bytes(1_000_000_000);
    let name = ProjectSubscriptionName::new("demo-project", "flood");
    let messages = client.stream_subscription(name, config);
    futures::pin_mut!(messages);
    let mut cuts: Cuts<AcknowledgeToken> = Cuts::new(receive.every());
    loop {
        let next = tokio::select! {
            biased;
            tokens = cuts.due(), if cuts.timed() => {
                meter.held(number(&tokens));
                for token in tokens.into_iter().flatten() {
                    drop(token.ack());
                }
                continue;
            }
            next = messages.next() => next,
        };
        let (token, message) = next.ok_or("the stream ended")??;
        black_box(message);
        meter.count(1);
        if cuts.timed() {
            cuts.hold(token);
        } else {
            drop(token.ack());
        }
    }
}
