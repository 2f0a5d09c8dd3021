//! The trait that a host's loop is written against.

use async_trait::async_trait;
use bytes::Bytes;
use connector_core::{Epoch, Restored};

use crate::StoreError;

/// A durable place for a host's checkpoints, with one owner at a time.
///
/// Whoever opens a store owns it until somebody else takes it over. From then on every call of the
/// old owner answers [`StoreError::NotOwner`] and nothing it does is visible to the new one; a host
/// that sees this answer drops its connectors *without committing*, because a commit would settle
/// messages that only it has processed.
///
/// # Shape
///
/// The methods return boxed `Send` futures (through [`macro@async_trait`]), so that a host can keep
/// a `Box<dyn CheckpointStore>` and choose the store at run time. The price, one small allocation
/// per call, is paid once per checkpoint and disappears beside the write it waits for. Implement the
/// trait with the same attribute.
///
/// # What an implementation promises
///
/// * A `save` that answered `Ok` is what [`newest`](Self::newest) answers from then on, whatever
///   crashes, until a later `save` answers `Ok` (or fails but became durable after all).
/// * `newest` never falls back to an older state, not even when the newest one cannot be read:
///   what was committed under the newest is acknowledged and will not come again.
/// * The futures are cancel safe in this sense: a dropped call has either happened or not, never
///   half, and the next call waits until that is decided.
#[async_trait]
pub trait CheckpointStore: Send + Sync {
    /// The newest state that was ever durable, or `None` when nothing was saved yet.
    ///
    /// Its `settled` says whether the mark of that epoch was written.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotOwner`] for an owner that was replaced; [`StoreError::Damaged`],
    /// [`StoreError::Foreign`], [`StoreError::NewerVersion`] or [`StoreError::Missing`] when the
    /// newest state is there but cannot be used; [`StoreError::Unreadable`] when the place cannot
    /// be read. None of them changes anything.
    async fn newest(&self) -> Result<Option<Restored<Bytes>>, StoreError>;

    /// Makes `state` durable as `epoch`. Only after the `Ok` may the host commit the epoch.
    ///
    /// # Errors
    ///
    /// [`StoreError::OutOfOrder`] when `epoch` is not newer than the newest saved one, and nothing
    /// was written; [`StoreError::NotOwner`] for an owner that was replaced;
    /// [`StoreError::NotSaved`] when the write failed, after which the state may or may not be
    /// durable: the host saves the same state again under the same epoch, or aborts the epoch and
    /// goes on under a higher number, or rebuilds from `newest`.
    async fn save(&mut self, epoch: Epoch, state: Bytes) -> Result<(), StoreError>;

    /// Marks `epoch` as settled: all its commit receipts have resolved.
    ///
    /// A small durable write. Losing it only repeats work after a crash: staged output of the epoch
    /// is sent again. The mark is about the newest epoch, the only one that is ever restored. For
    /// an older one it is checked and then dropped: the state saved since is cumulative and
    /// already says what of the older epoch was still unconfirmed.
    ///
    /// # Errors
    ///
    /// [`StoreError::NeverSaved`] for an epoch beyond the newest saved one;
    /// [`StoreError::NotOwner`] for an owner that was replaced; [`StoreError::NotMarked`] when the
    /// write failed.
    async fn settled(&mut self, epoch: Epoch) -> Result<(), StoreError>;

    /// Notes that `epoch` is about to be committed, before its first commit call.
    ///
    /// Optional: a host that writes it, and calls no commit between a snapshot and the end of its
    /// save, can later tell an epoch that was *never attempted* from one that may have been sent in
    /// part ([`Progress::Saved`](crate::Progress::Saved) has the exact rule). The default does nothing. The rules for older and unknown
    /// epochs are those of [`settled`](Self::settled); a settled epoch stays settled.
    ///
    /// # Errors
    ///
    /// Those of [`settled`](Self::settled).
    async fn committing(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        let _ = epoch;
        Ok(())
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: CheckpointStore + ?Sized> CheckpointStore for &mut S {
    async fn newest(&self) -> Result<Option<Restored<Bytes>>, StoreError> {
        (**self).newest().await
    }

    async fn save(&mut self, epoch: Epoch, state: Bytes) -> Result<(), StoreError> {
        (**self).save(epoch, state).await
    }

    async fn settled(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        (**self).settled(epoch).await
    }

    async fn committing(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        (**self).committing(epoch).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: CheckpointStore + ?Sized> CheckpointStore for Box<S> {
    async fn newest(&self) -> Result<Option<Restored<Bytes>>, StoreError> {
        (**self).newest().await
    }

    async fn save(&mut self, epoch: Epoch, state: Bytes) -> Result<(), StoreError> {
        (**self).save(epoch, state).await
    }

    async fn settled(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        (**self).settled(epoch).await
    }

    async fn committing(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        (**self).committing(epoch).await
    }
}
