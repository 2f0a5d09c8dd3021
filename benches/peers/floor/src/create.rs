//! So many loops that create one task after the other.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use googleapis_tonic_google_cloud_tasks_v2::google::cloud::tasks::v2::{
    CreateTaskRequest, HttpMethod, HttpRequest, Task, cloud_tasks_client::CloudTasksClient,
    task::MessageType,
};
use load::{Create, Failure, Meter, Usage, now};
use tonic::transport::Channel;

/// One creation in so many is timed.
const SAMPLED: u64 = 100;

pub(crate) async fn run(create: Create) -> Result<(), Failure> {
    let base = Usage::now()?;
    let meter = Meter::new(&create.flags);
    let work = loops(create.clone(), Arc::clone(&meter));
    meter.measure("create", &create.flags, base, work).await
}

#[expect(
    clippy::disallowed_methods,
    reason = "a loop without logic: its end ends the measurement"
)]
async fn loops(create: Create, meter: Arc<Meter>) -> Result<(), Failure> {
    let channel = crate::connect(create.endpoint()?).await?;
    meter.held(create.in_flight as u64);
    let loops = (0..create.in_flight).map(|_| {
        let one = one(channel.clone(), create.clone(), Arc::clone(&meter));
        tokio::spawn(one)
    });
    for ended in try_join_all(loops).await? {
        ended?;
    }
    Ok(())
}

async fn one(channel: Channel, create: Create, meter: Arc<Meter>) -> Result<(), Failure> {
    let mut client = CloudTasksClient::new(channel);
    let body = Bytes::from(vec![b'x'; create.payload_bytes]);
    for number in 0_u64.. {
        let request = HttpRequest {
            url: "https://partner.example/orders".to_owned(),
            http_method: HttpMethod::Post.into(),
            body: body.clone(),
            ..Default::default()
        };
        let request = CreateTaskRequest {
            parent: create.queue.clone(),
            task: Some(Task {
                message_type: Some(MessageType::HttpRequest(request)),
                ..Default::default()
            }),
            ..Default::default()
        };
        let sent = number.is_multiple_of(SAMPLED).then(now);
        client.create_task(request).await?;
        meter.count(1);
        if let Some(sent) = sent {
            meter.took(sent.elapsed());
        }
    }
    Ok(())
}
