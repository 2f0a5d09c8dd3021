//! The crate ya-gcp with its tokens and its sink.

mod publish;
mod receive;

use std::process::ExitCode;

use load::{Failure, Mode};
use ya_gcp::{AuthFlow, ClientBuilder, ClientBuilderConfig, pubsub::PubSubConfig};

fn main() -> ExitCode {
    load::run(|mode| async {
        match mode {
            Mode::Receive(receive) => receive::run(receive).await,
            Mode::Publish(publish) => publish::run(publish).await,
            Mode::Create(_) => Err(mode.unknown()),
        }
    })
}

async fn builder() -> Result<ClientBuilder, Failure> {
    let config = ClientBuilderConfig::new().auth_flow(AuthFlow::NoAuth);
    Ok(ClientBuilder::new(config).await?)
}

fn config(address: &str) -> PubSubConfig {
    PubSubConfig::new().endpoint(format!("http://{address}"))
}
