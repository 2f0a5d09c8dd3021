//! A job's process, which can be killed, for examples that claim something about crashes.

use std::pin::Pin;
use std::task::{Context, Poll};

use connector_core::BoxError;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It is killed wherever it is: nothing is finished, released or saved.
    Killed,
    /// It is asked to end, as by SIGTERM, and takes its time.
    Asked,
}

/// Resolves when the process is asked to end.
#[derive(Debug)]
pub struct Asked(oneshot::Receiver<()>);

impl Future for Asked {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Whoever could ask is gone: that is a reason to end too.
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

/// Runs a job in what stands for a process of its own, until it ends by itself or as `end` says.
///
/// The job has a thread with a runtime that nothing else uses, so a kill is one: neither the job nor
/// any task that its connectors started takes one more step. All that is left of it is what the
/// servers and the disk have.
///
/// # Errors
///
/// What the job or `end` answers, and a panic of the job.
///
/// # Cancel safety
///
/// Dropping the future asks the job to end and does not wait for it.
pub async fn process<F>(
    job: impl FnOnce(Asked) -> F + Send + 'static,
    end: impl Future<Output = Result<End, BoxError>> + Send,
) -> Result<(), BoxError>
where
    F: Future<Output = Result<(), BoxError>>,
{
    let (ask, asked) = oneshot::channel();
    let (kill, killed) = oneshot::channel::<()>();
    let mut process = tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            tokio::select! { biased;
                // The sender is kept until the process is over, or is gone with its owner.
                Ok(()) = killed => Ok(()),
                done = job(Asked(asked)) => done,
            }
        })
        // The runtime has not run since, and drops what it has.
    });
    let end = tokio::select! {
        done = &mut process => return done?,
        end = end => end?,
    };
    match end {
        // One that has ended meanwhile is told in vain.
        End::Killed => kill.send(()).unwrap_or_default(),
        End::Asked => ask.send(()).unwrap_or_default(),
    }
    process.await?
}
