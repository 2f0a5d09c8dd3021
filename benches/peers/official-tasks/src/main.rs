//! Google's own client: REST, JSON and base64, as it is made.

use std::{process::ExitCode, sync::Arc};

use bytes::Bytes;
use futures::future::try_join_all;
use google_cloud_auth::credentials::anonymous;
use google_cloud_tasks_v2::{
    client::CloudTasks,
    model::{HttpMethod, HttpRequest, Task},
};
use load::{Create, Failure, Meter, Mode, Usage, now};

/// One creation in so many is timed.
const SAMPLED: u64 = 100;

fn main() -> ExitCode {
    // No connection here is encrypted, yet its HTTP client wants to know who would do it.
    let _other = rustls::crypto::ring::default_provider().install_default();
    load::run(|mode| async {
        match mode {
            Mode::Create(create) => run(create).await,
            Mode::Receive(_) | Mode::Publish(_) => Err(mode.unknown()),
        }
    })
}

async fn run(create: Create) -> Result<(), Failure> {
    let base = Usage::now()?;
    let meter = Meter::new(&create.flags);
    let work = loops(create.clone(), Arc::clone(&meter));
    meter.measure("create", &create.flags, base, work).await
}

#[expect(
    clippy::disallowed_methods,
    reason = "the end of a loop ends the measurement"
)]
async fn loops(create: Create, meter: Arc<Meter>) -> Result<(), Failure> {
    let client = CloudTasks::builder()
        .with_endpoint(format!("http://{}", create.endpoint()?))
        .with_credentials(anonymous::Builder::new().build())
        .build()
        .await?;
    meter.held(create.in_flight as u64);
    let loops = (0..create.in_flight).map(|_| {
        let one = one(client.clone(), create.clone(), Arc::clone(&meter));
        tokio::spawn(one)
    });
    for ended in try_join_all(loops).await? {
        ended?;
    }
    Ok(())
}

async fn one(client: CloudTasks, create: Create, meter: Arc<Meter>) -> Result<(), Failure> {
    let body = Bytes::from(vec![b'x'; create.payload_bytes]);
    for number in 0_u64.. {
        let request = HttpRequest::new()
            .set_url("https://partner.example/orders")
            .set_http_method(HttpMethod::Post)
            .set_body(body.clone());
        let sent = number.is_multiple_of(SAMPLED).then(now);
        client
            .create_task()
            .set_parent(create.queue.as_str())
            .set_task(Task::new().set_http_request(request))
            .send()
            .await?;
        meter.count(1);
        if let Some(sent) = sent {
            meter.took(sent.elapsed());
        }
    }
    Ok(())
}
