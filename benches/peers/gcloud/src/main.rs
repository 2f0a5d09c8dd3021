//! The crate gcloud-pubsub with its batched acknowledgement.
//!
//! Its documented `message.ack().await` is one request per message and is not measured here: it is
//! bound by the round trip and not by the processor.

mod publish;
mod receive;

use std::process::ExitCode;

use gcloud_gax::conn::Environment;
use gcloud_pubsub::client::{Client, ClientConfig};
use load::{Failure, Mode};

fn main() -> ExitCode {
    load::run(|mode| async {
        match mode {
            Mode::Receive(receive) => receive::run(receive).await,
            Mode::Publish(publish) => publish::run(publish).await,
            Mode::Create(_) => Err(mode.unknown()),
        }
    })
}

async fn connect(address: &str) -> Result<Client, Failure> {
    let config = ClientConfig {
        project_id: Some("demo-project".to_owned()),
        environment: Environment::Emulator(address.to_owned()),
        ..ClientConfig::default()
    };
    Ok(Client::new(config).await?)
}
