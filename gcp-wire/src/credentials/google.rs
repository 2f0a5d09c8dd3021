use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use google_cloud_auth::credentials::{CacheableResource, Credentials};
use http::Extensions;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::recipe::Recipe;
use super::{AuthHeaders, CredentialsError, CredentialsSource};
use crate::clock;

/// The least time between two rebuilds: a service that refuses every token must not turn into a
/// flood of requests at the token endpoint.
const REBUILD_INTERVAL: Duration = Duration::from_secs(10);

/// Credentials of `google-cloud-auth`, made from a kept recipe, and made again when the service
/// refuses them, when they failed for good, or when the runtime that their refreshing task lived on
/// is gone (which the library answers with a panic).
pub(super) struct GoogleSource {
    recipe: Recipe,
    current: Mutex<Current>,
}

struct Current {
    made: Arc<Made>,
    rebuilt: Option<Instant>,
}

/// One object made from the recipe, at its first use.
#[derive(Default)]
struct Made {
    cell: OnceCell<Credentials>,
}

enum Failure {
    /// The object is of no use any more; another may be.
    Dead(CredentialsError),
    /// The object goes on trying by itself, or there is none yet.
    Alive(CredentialsError),
}

impl GoogleSource {
    pub(super) fn new(recipe: Recipe) -> Self {
        let current = Current {
            made: Arc::default(),
            rebuilt: None,
        };
        Self {
            recipe,
            current: Mutex::new(current),
        }
    }

    fn current(&self) -> Arc<Made> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current.made)
    }

    /// Puts an empty object in the place of `old`. Tells whether another than `old` is there now.
    fn replace(&self, old: &Arc<Made>, now: Instant) -> bool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&current.made, old) {
            return true;
        }
        let due = current
            .rebuilt
            .is_none_or(|at| now >= at + REBUILD_INTERVAL);
        if due {
            *current = Current {
                made: Arc::default(),
                rebuilt: Some(now),
            };
        }
        due
    }

    async fn ask(&self, made: &Made) -> Result<AuthHeaders, Failure> {
        let credentials = made
            .cell
            .get_or_try_init(|| self.build())
            .await
            .map_err(Failure::Alive)?;
        let headers = AssertUnwindSafe(credentials.headers(Extensions::new()))
            .catch_unwind()
            .await;
        match headers {
            Ok(Ok(CacheableResource::New { data, .. })) => Ok(AuthHeaders::from(data)),
            Ok(Err(error)) if error.is_transient() => {
                Err(Failure::Alive(CredentialsError::Unavailable))
            }
            // "Not modified" answers a tag, and none was given.
            Ok(Ok(CacheableResource::NotModified) | Err(_)) => {
                Err(Failure::Dead(CredentialsError::Refused))
            }
            Err(_panic) => Err(Failure::Dead(CredentialsError::Unavailable)),
        }
    }

    /// Reads files, so it runs where blocking is allowed; what it spawns lives on this runtime.
    async fn build(&self) -> Result<Credentials, CredentialsError> {
        let recipe = self.recipe.clone();
        tokio::task::spawn_blocking(move || recipe.build())
            .await
            .unwrap_or(Err(CredentialsError::Unavailable))
    }
}

impl CredentialsSource for GoogleSource {
    fn headers(&self) -> BoxFuture<'_, Result<AuthHeaders, CredentialsError>> {
        Box::pin(async move {
            let made = self.current();
            match self.ask(&made).await {
                Ok(headers) => Ok(headers),
                Err(Failure::Alive(error)) => Err(error),
                Err(Failure::Dead(error)) => {
                    if !self.replace(&made, clock::now()) {
                        return Err(error);
                    }
                    let fresh = self.current();
                    self.ask(&fresh).await.map_err(|failure| match failure {
                        Failure::Dead(error) | Failure::Alive(error) => error,
                    })
                }
            }
        })
    }

    fn invalidate(&self) {
        let made = self.current();
        // What was never made, or made within the last interval, is fresh.
        if made.cell.initialized() && self.replace(&made, clock::now()) {
            tracing::info!("the service refused the credentials; they are made afresh");
        }
    }
}
