//! One message stream, and an acknowledgement per message.

use std::{hint::black_box, sync::Arc, time::Duration};

use google_cloud_pubsub::{client::Subscriber, subscriber::handler::Handler};
use load::{Cuts, Failure, Meter, Receive, Usage, number};

pub(crate) async fn run(receive: Receive) -> Result<(), Failure> {
    let base = Usage::now()?;
    let meter = Meter::new(&receive.flags);
    let work = pull(receive.clone(), Arc::clone(&meter));
    meter.measure("receive", &receive.flags, base, work).await
}

async fn pull(receive: Receive, meter: Arc<Meter>) -> Result<(), Failure> {
    let client = Subscriber::builder()
        .with_endpoint(format!("http://{}", receive.endpoint()?))
        .with_credentials(crate::nobody())
        .build()
        .await?;
    let mut messages = client
        .subscribe(receive.subscription.as_str())
        .set_max_outstanding_messages(receive.outstanding)
        .set_max_outstanding_bytes(1_000_000_000_i64)
        .set_max_lease_extension(Duration::from_secs(60))
        .build();
    let mut cuts: Cuts<Handler> = Cuts::new(receive.every());
    loop {
        let next = tokio::select! {
            biased;
            handlers = cuts.due(), if cuts.timed() => {
                meter.held(number(&handlers));
                handlers.into_iter().flatten().for_each(Handler::ack);
                continue;
            }
            next = messages.next() => next,
        };
        let (message, handler) = next.ok_or("the stream ended")??;
        black_box(message);
        meter.count(1);
        if cuts.timed() {
            cuts.hold(handler);
        } else {
            handler.ack();
        }
    }
}
