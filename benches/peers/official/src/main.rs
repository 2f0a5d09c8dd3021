//! Google's own client, used as its documentation shows.
//!
//! Receiving: `MessageStream::next` and `Handler::ack`. Publishing: one future per message, so many
//! awaited at once that all requests under way are full.

mod publish;
mod receive;

use std::process::ExitCode;

use google_cloud_auth::credentials::{Credentials, anonymous};
use load::Mode;

fn main() -> ExitCode {
    // No connection here is encrypted, yet its HTTP client wants to know who would do it.
    let _other = rustls::crypto::ring::default_provider().install_default();
    load::run(|mode| async {
        match mode {
            Mode::Receive(receive) => receive::run(receive).await,
            Mode::Publish(publish) => publish::run(publish).await,
            Mode::Create(_) => Err(mode.unknown()),
        }
    })
}

fn nobody() -> Credentials {
    anonymous::Builder::new().build()
}
