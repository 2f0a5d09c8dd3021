use std::path::{Path, PathBuf};

use google_cloud_auth::credentials::service_account::AccessSpecifier;
use google_cloud_auth::credentials::{Builder, Credentials, mds, service_account, user_account};
use serde_json::Value;

use super::CredentialsError;
use crate::endpoint::Service;

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// How to make credentials, kept so that they can be made afresh.
///
/// The library's own object cannot be refreshed or revived: it caches a token until shortly before
/// it expires, and a permanent error ends it for good.
#[derive(Clone)]
pub(super) enum Recipe {
    ApplicationDefault,
    ServiceAccount {
        path: PathBuf,
        audience: Option<Service>,
    },
    AuthorizedUser {
        path: PathBuf,
        token_endpoint: Option<String>,
    },
    Metadata {
        endpoint: Option<String>,
    },
}

impl Recipe {
    /// Makes the credentials. Reads files, and spawns a task on the current runtime.
    pub(super) fn build(&self) -> Result<Credentials, CredentialsError> {
        ensure_crypto_provider()?;
        match self {
            Self::ApplicationDefault => Builder::default()
                .with_scopes([SCOPE])
                .build()
                .map_err(|_| CredentialsError::NoDefault),
            Self::ServiceAccount { path, audience } => {
                let access = match audience {
                    Some(service) => {
                        AccessSpecifier::from_audience(format!("https://{}/", service.host()))
                    }
                    None => AccessSpecifier::from_scopes([SCOPE]),
                };
                service_account::Builder::new(read(path, "service_account")?)
                    .with_access_specifier(access)
                    .build()
                    .map_err(|_| CredentialsError::FileMalformed)
            }
            Self::AuthorizedUser {
                path,
                token_endpoint,
            } => {
                let mut builder = user_account::Builder::new(read(path, "authorized_user")?);
                if let Some(endpoint) = token_endpoint {
                    builder = builder.with_token_uri(endpoint);
                }
                builder.build().map_err(|_| CredentialsError::FileMalformed)
            }
            Self::Metadata { endpoint } => {
                let mut builder = mds::Builder::default().with_scopes([SCOPE]);
                if let Some(endpoint) = endpoint {
                    builder = builder.with_endpoint(endpoint);
                }
                builder.build().map_err(|_| CredentialsError::Refused)
            }
        }
    }
}

/// Reads a file of this kind. What is wrong with it is told by class only, since both the path and
/// the contents may be secret.
fn read(path: &Path, kind: &'static str) -> Result<Value, CredentialsError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| CredentialsError::FileUnreadable(error.kind()))?;
    let json: Value = serde_json::from_str(&text).map_err(|_| CredentialsError::FileMalformed)?;
    if json.get("type").and_then(Value::as_str) == Some(kind) {
        Ok(json)
    } else {
        Err(CredentialsError::FileKind { expected: kind })
    }
}

/// With the ring provider only, `google-cloud-auth` takes the process's default provider, and
/// panics where there is none. So one is installed, unless the host has done it.
#[cfg(all(feature = "tls-ring", not(feature = "tls-aws-lc")))]
fn ensure_crypto_provider() -> Result<(), CredentialsError> {
    use tokio_rustls::rustls::crypto::{CryptoProvider, ring};

    if CryptoProvider::get_default().is_none() {
        // An error means that another thread was faster, which is as good.
        ring::default_provider().install_default().ok();
    }
    Ok(())
}

/// With the aws-lc provider, `google-cloud-auth` brings its own.
#[cfg(feature = "tls-aws-lc")]
#[expect(clippy::unnecessary_wraps, reason = "the other variants can fail")]
const fn ensure_crypto_provider() -> Result<(), CredentialsError> {
    Ok(())
}

/// Without a TLS feature this crate cannot see whether the host installed a provider.
#[cfg(not(any(feature = "tls-ring", feature = "tls-aws-lc")))]
const fn ensure_crypto_provider() -> Result<(), CredentialsError> {
    Err(CredentialsError::NoCryptoProvider)
}
