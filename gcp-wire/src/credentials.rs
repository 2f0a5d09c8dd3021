//! Who we are to the service: asked for per call, dropped when the service does not accept it.

mod google;
mod recipe;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};

use self::google::GoogleSource;
use self::recipe::Recipe;
use crate::endpoint::Service;

/// Why there are no credentials to send; the request never left.
///
/// The text never holds a path, a file's contents, a token, or what a token endpoint answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// The token endpoint could not be reached, or failed in a way that may pass.
    #[error(
        "no token could be obtained for the credentials; try again, and if it stays so check the way \
         to the token endpoint, or outside Google Cloud run `gcloud auth application-default login`"
    )]
    Unavailable,
    /// The token endpoint refused for good, or the credentials cannot sign.
    #[error("credentials were refused or cannot be used; check that they are valid and enabled")]
    Refused,
    /// The key file cannot be read.
    #[error("the credentials file cannot be read ({0}); check that it exists and is readable")]
    FileUnreadable(io::ErrorKind),
    /// The key file is not JSON with the fields of its kind.
    #[error("the credentials file is not valid JSON of a credential; download it again")]
    FileMalformed,
    /// The key file holds another kind of credential than the one asked for.
    #[error("the credentials file is not of type {expected}; give a file of that type")]
    FileKind {
        /// The `type` that was asked for.
        expected: &'static str,
    },
    /// No application-default credentials could be set up.
    #[error(
        "application-default credentials cannot be set up; check the file named by \
         GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`"
    )]
    NoDefault,
    /// Neither TLS feature is on and the host installed no crypto provider.
    #[error(
        "there is no crypto provider to sign or connect with; enable a feature tls-ring or \
         tls-aws-lc, or install a rustls provider at the start of the program"
    )]
    NoCryptoProvider,
    /// A header is not printable ASCII.
    #[error("a credentials header is not printable ASCII; check the token for stray characters")]
    InvalidHeader,
}

impl CredentialsError {
    /// Whether trying again may help without anybody changing anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable => true,
            Self::Refused
            | Self::FileUnreadable(_)
            | Self::FileMalformed
            | Self::FileKind { .. }
            | Self::NoDefault
            | Self::NoCryptoProvider
            | Self::InvalidHeader => false,
        }
    }
}

/// The headers that authenticate one request.
///
/// Values are marked sensitive: they are not printed, and HPACK does not index them.
#[derive(Clone, Default)]
pub struct AuthHeaders {
    map: HeaderMap,
}

impl AuthHeaders {
    /// No headers at all.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// `authorization: Bearer {token}`.
    ///
    /// # Errors
    ///
    /// [`CredentialsError::InvalidHeader`] when the token is not printable ASCII.
    pub fn bearer(token: &str) -> Result<Self, CredentialsError> {
        Self::none().and("authorization", &format!("Bearer {token}"))
    }

    /// These headers and one more, for example `x-goog-user-project`.
    ///
    /// # Errors
    ///
    /// [`CredentialsError::InvalidHeader`] when name or value cannot be a header.
    pub fn and(mut self, name: &str, value: &str) -> Result<Self, CredentialsError> {
        let name: HeaderName = name.parse().map_err(|_| CredentialsError::InvalidHeader)?;
        let mut value: HeaderValue = value.parse().map_err(|_| CredentialsError::InvalidHeader)?;
        value.set_sensitive(true);
        self.map.insert(name, value);
        Ok(self)
    }

    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.map {
            headers.insert(name, value.clone());
        }
    }
}

impl From<HeaderMap> for AuthHeaders {
    fn from(mut map: HeaderMap) -> Self {
        for value in map.values_mut() {
            value.set_sensitive(true);
        }
        Self { map }
    }
}

impl fmt::Debug for AuthHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.map.keys()).finish()
    }
}

/// A source of credentials; implement it to plug in your own.
pub trait CredentialsSource: Send + Sync + 'static {
    /// The headers for one request. Asked for before every request, so it should cache.
    ///
    /// # Errors
    ///
    /// A [`CredentialsError`]; [`CredentialsError::is_transient`] says whether the caller retries.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when the time of its request runs out; that must lose nothing.
    fn headers(&self) -> BoxFuture<'_, Result<AuthHeaders, CredentialsError>>;

    /// The service did not accept the last headers: get fresh ones next time.
    fn invalidate(&self);
}

/// The credentials that a connection uses.
///
/// Cheap to clone; clones share one token. Making one reads nothing and connects to nothing: that
/// happens at the first request, on the runtime that makes it.
#[derive(Clone)]
pub struct Credentials {
    kind: &'static str,
    source: Option<Arc<dyn CredentialsSource>>,
}

impl Credentials {
    /// Google's application-default credentials.
    ///
    /// In this order: the file named by `GOOGLE_APPLICATION_CREDENTIALS`, the well-known file that
    /// `gcloud auth application-default login` writes, the metadata server of Google Cloud.
    #[must_use]
    pub fn application_default() -> Self {
        Self::google("application default", Recipe::ApplicationDefault)
    }

    /// A service-account key file in JSON; a file of another type is refused.
    ///
    /// The key signs its own tokens, with the scope `cloud-platform`; no token endpoint is asked.
    /// The file is read at the first request, and again when the service refuses the token.
    #[must_use]
    pub fn service_account_key_file(path: impl Into<PathBuf>) -> Self {
        let recipe = Recipe::ServiceAccount {
            path: path.into(),
            audience: None,
        };
        Self::google("service account key file", recipe)
    }

    /// As [`service_account_key_file`](Self::service_account_key_file), with tokens that only
    /// `service` accepts: `aud` is the service instead of a scope for the whole platform.
    #[must_use]
    pub fn service_account_key_file_for(path: impl Into<PathBuf>, service: Service) -> Self {
        let recipe = Recipe::ServiceAccount {
            path: path.into(),
            audience: Some(service),
        };
        Self::google("service account key file", recipe)
    }

    /// A user's credentials file in JSON, as `gcloud auth application-default login` writes it.
    #[must_use]
    pub fn authorized_user_file(path: impl Into<PathBuf>) -> Self {
        let recipe = Recipe::AuthorizedUser {
            path: path.into(),
            token_endpoint: None,
        };
        Self::google("authorized user file", recipe)
    }

    /// As [`authorized_user_file`](Self::authorized_user_file), with another token endpoint, for
    /// private deployments and tests.
    #[must_use]
    pub fn authorized_user_file_at(
        path: impl Into<PathBuf>,
        token_endpoint: impl Into<String>,
    ) -> Self {
        let recipe = Recipe::AuthorizedUser {
            path: path.into(),
            token_endpoint: Some(token_endpoint.into()),
        };
        Self::google("authorized user file", recipe)
    }

    /// The metadata server of Google Cloud.
    #[must_use]
    pub fn metadata_server() -> Self {
        Self::google("metadata server", Recipe::Metadata { endpoint: None })
    }

    /// A metadata server at `endpoint`, for example `http://127.0.0.1:8080`.
    #[must_use]
    pub fn metadata_server_at(endpoint: impl Into<String>) -> Self {
        let recipe = Recipe::Metadata {
            endpoint: Some(endpoint.into()),
        };
        Self::google("metadata server", recipe)
    }

    /// No credentials: nothing is looked up and no `authorization` header is sent.
    #[must_use]
    pub const fn anonymous() -> Self {
        Self {
            kind: "anonymous",
            source: None,
        }
    }

    /// A source of your own.
    #[must_use]
    pub fn custom(source: impl CredentialsSource) -> Self {
        Self {
            kind: "custom",
            source: Some(Arc::new(source)),
        }
    }

    fn google(kind: &'static str, recipe: Recipe) -> Self {
        Self {
            kind,
            source: Some(Arc::new(GoogleSource::new(recipe))),
        }
    }

    pub(crate) async fn headers(&self) -> Result<AuthHeaders, CredentialsError> {
        match &self.source {
            Some(source) => source.headers().await,
            None => Ok(AuthHeaders::none()),
        }
    }

    /// Whether asking again can give other headers. A source that panics gives none.
    pub(crate) fn invalidate(&self) -> bool {
        self.source
            .as_ref()
            .is_some_and(|source| catch_unwind(AssertUnwindSafe(|| source.invalidate())).is_ok())
    }
}

/// Prints only the kind.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credentials").field(&self.kind).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_printed() {
        let credentials = Credentials::service_account_key_file("/secret/path.json");
        assert_eq!(
            format!("{credentials:?}"),
            "Credentials(\"service account key file\")"
        );
        let headers = AuthHeaders::bearer("s3cret")
            .unwrap()
            .and("x-goog-user-project", "p");
        let printed = format!("{:?}", headers.unwrap());
        assert!(
            printed.contains("authorization") && !printed.contains("s3cret"),
            "{printed}"
        );
    }

    #[test]
    fn a_token_that_cannot_be_a_header_is_an_error_without_the_token() {
        let error = AuthHeaders::bearer("bad\ntoken").unwrap_err();
        assert_eq!(error, CredentialsError::InvalidHeader);
        assert!(!error.to_string().contains("bad"));
        assert_eq!(AuthHeaders::none().and("a b", "c").unwrap_err(), error);
    }
}
