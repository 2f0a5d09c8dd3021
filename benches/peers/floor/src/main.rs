//! A bare tonic loop with generated types and no logic at all.
//!
//! No retries, no leases, no batching by need, no verdicts: what anybody pays who speaks gRPC with
//! tonic and prost. It is what the others are measured against; it is no limit of physics.

mod create;
mod publish;
mod receive;

use std::process::ExitCode;

use load::{Failure, Mode};
use tonic::transport::Channel;

fn main() -> ExitCode {
    load::run(|mode| async {
        match mode {
            Mode::Receive(receive) => receive::run(receive).await,
            Mode::Publish(publish) => publish::run(publish).await,
            Mode::Create(create) => create::run(create).await,
        }
    })
}

async fn connect(address: &str) -> Result<Channel, Failure> {
    Ok(Channel::from_shared(format!("http://{address}"))?
        .connect()
        .await?)
}
