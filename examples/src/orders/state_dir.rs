//! The state directory as the parent process sees it: it counts checkpoints, and can lose them.

use std::io;
use std::path::{Path, PathBuf};

use checkpoint_store::{CheckpointStore, FileStore};
use connector_core::Epoch;
use tempfile::TempDir;

use super::error::OrdersError;

/// Where the pipeline keeps its checkpoints.
///
/// Epochs count up by one per durable checkpoint, so their number is the newest epoch less the one
/// there was before. Opened only while no pipeline runs: opening takes the ownership.
#[derive(Debug)]
pub(crate) struct StateDir {
    path: PathBuf,
    /// Removes the directory at the end.
    _temporary: Option<TempDir>,
    /// The newest epoch before the pipeline (or its successor, after a loss) began.
    before: u64,
    /// Checkpoints that were durable and are lost.
    lost: u64,
}

impl StateDir {
    /// The given directory, or a temporary one.
    pub(crate) async fn open(given: Option<&Path>) -> Result<Self, OrdersError> {
        let what = "a temporary state directory";
        let (path, temporary) = match given {
            Some(path) => (path.to_owned(), None),
            None => {
                let temporary = tempfile::Builder::new()
                    .prefix("orders-")
                    .tempdir()
                    .map_err(|source| OrdersError::Start { what, source })?;
                (temporary.path().join("state"), Some(temporary))
            }
        };
        let mut directory = Self {
            path,
            _temporary: temporary,
            before: 0,
            lost: 0,
        };
        directory.before = directory.newest().await?;
        Ok(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many checkpoints became durable since [`open`](Self::open).
    pub(crate) async fn checkpoints(&self) -> Result<u64, OrdersError> {
        Ok(self.lost + self.newest().await?.saturating_sub(self.before))
    }

    /// Deletes the directory with everything in it.
    pub(crate) async fn lose(&mut self) -> Result<(), OrdersError> {
        self.lost = self.checkpoints().await?;
        self.before = 0;
        match tokio::fs::remove_dir_all(&self.path).await {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                let directory = self.path.clone();
                Err(OrdersError::Lose { directory, source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    async fn newest(&self) -> Result<u64, OrdersError> {
        let newest = async {
            let store = FileStore::open(&self.path).await?;
            let newest = store.newest().await;
            store.close().await;
            Ok(newest?
                .map_or_else(Epoch::default, |newest| newest.epoch)
                .get())
        };
        newest.await.map_err(|source| OrdersError::State {
            directory: self.path.clone(),
            source,
        })
    }
}
