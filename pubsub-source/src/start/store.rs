//! Where the record of a job's start is kept.

use std::{convert::Infallible, future::Future};

use super::StartRecord;

/// A durable place for the [`StartRecord`] of one job.
///
/// The host implements it over whatever it keeps its checkpoints in: a row, an object, a file, a
/// checkpoint store. The record is plain data (`Serialize`, `Deserialize`), a few hundred bytes.
///
/// **One owner.** `save` must fail for a process that is no longer the owner of the place: one that
/// has been replaced meanwhile, or, where several may come at the same time, one that did not
/// load what is there now (a conditional write, an `INSERT`, a file that must not exist). What
/// [`prepare`](crate::prepare) does is right for one owner; two at once would seek twice.
pub trait StartStore: Send {
    /// Why the place cannot be used.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The record that was saved last; `None` if there never was one.
    ///
    /// # Errors
    ///
    /// Whatever keeps the record from being read. An unreadable record is an error and never
    /// `None`: that would seek again.
    fn load(&mut self) -> impl Future<Output = Result<Option<StartRecord>, Self::Error>> + Send;

    /// Makes `record` durable in the place of what was there. Only after the `Ok` it is relied on.
    ///
    /// # Errors
    ///
    /// Whatever keeps the record from being durable. It may be durable nevertheless: the next
    /// start goes on from what it finds.
    fn save(&mut self, record: StartRecord)
    -> impl Future<Output = Result<(), Self::Error>> + Send;
}

impl<S: StartStore> StartStore for &mut S {
    type Error = S::Error;

    fn load(&mut self) -> impl Future<Output = Result<Option<StartRecord>, Self::Error>> + Send {
        (**self).load()
    }

    fn save(
        &mut self,
        record: StartRecord,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        (**self).save(record)
    }
}

/// Keeps no record: a position other than [`Continue`](crate::StartPosition::Continue) is sought
/// again at **each** start.
///
/// Right for jobs that only ever continue, and for those that shall begin anew each time.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has nothing and never will")]
pub struct Unrecorded;

impl StartStore for Unrecorded {
    type Error = Infallible;

    async fn load(&mut self) -> Result<Option<StartRecord>, Infallible> {
        Ok(None)
    }

    async fn save(&mut self, _: StartRecord) -> Result<(), Infallible> {
        Ok(())
    }
}
