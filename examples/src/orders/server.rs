//! Where a service is, in words that fit on a command line and in a child's instructions.

use std::fmt;
use std::path::PathBuf;

use gcp_wire::{Credentials, Endpoint, EndpointError};
use serde::{Deserialize, Serialize};

/// A server of Pub/Sub or Cloud Tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Server {
    /// `HOST:PORT`.
    pub(crate) address: String,
    /// With a key the server is reached over TLS and signed in to; without, it is an emulator.
    pub(crate) key_file: Option<PathBuf>,
}

impl Server {
    pub(crate) const fn emulator(address: String) -> Self {
        Self {
            address,
            key_file: None,
        }
    }

    pub(crate) fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        match self.key_file {
            None => Endpoint::emulator(&self.address),
            Some(_) => Endpoint::tls(&self.address),
        }
    }

    pub(crate) fn credentials(&self) -> Credentials {
        match &self.key_file {
            None => Credentials::anonymous(),
            Some(file) => Credentials::service_account_key_file(file),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)
    }
}
