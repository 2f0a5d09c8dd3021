//! The pipeline's process, as its parent sees it.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::super::error::{OrdersError, PipelineText};
use super::super::memory;
use super::super::options::Role;
use super::super::pipeline::{Farewell, PipelineSpec};
use super::Program;

/// The last checkpoint and the farewells of three connectors, each of which has its own budget.
const STOP_BUDGET: Duration = Duration::from_secs(90);

/// The longest farewell that is read. An error chain has a few hundred bytes.
const FAREWELL_LIMIT: u64 = 64 * 1024;

const NAME: &str = "pipeline";

/// How a pipeline process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Departure {
    /// It took its last checkpoint and closed.
    Ended,
    /// It ended with an error.
    Failed(PipelineText),
    /// It died without a word: aborted, killed.
    Died(ExitStatus),
}

/// A running pipeline.
#[derive(Debug)]
pub(crate) struct PipelineProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    peak: Option<f64>,
}

impl PipelineProcess {
    pub(crate) async fn start(program: &Program, spec: &PipelineSpec) -> Result<Self, OrdersError> {
        let (mut child, stdin) = program
            .start(Role::Pipeline, spec, Stdio::inherit())
            .await
            .map_err(|source| OrdersError::Child {
                child: NAME,
                source,
            })?;
        let stdout = child.stdout.take();
        Ok(Self {
            child,
            stdin: Some(stdin),
            stdout,
            peak: None,
        })
    }

    /// Reads how much memory it holds; call it now and then, since it cannot be read afterwards.
    pub(crate) fn sample_memory(&mut self) {
        self.peak = self.child.id().and_then(memory::peak_mib).or(self.peak);
    }

    /// The most memory that was read, in MiB.
    pub(crate) const fn peak_mib(&self) -> Option<f64> {
        self.peak
    }

    /// Waits until the process has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the process has ended loses nothing.
    pub(crate) async fn departed(&mut self) -> Result<Departure, OrdersError> {
        let failed = |source| OrdersError::Child {
            child: NAME,
            source,
        };
        let status = self.child.wait().await.map_err(failed)?;
        // The process is gone, so the pipe holds all it will ever hold and this cannot wait long.
        let farewell = self.farewell().await.map_err(failed)?;
        Ok(match farewell {
            Some(Farewell::Failed { error }) => Departure::Failed(PipelineText(error)),
            Some(Farewell::Ended) if status.success() => Departure::Ended,
            Some(Farewell::Ended) | None => Departure::Died(status),
        })
    }

    async fn farewell(&mut self) -> io::Result<Option<Farewell>> {
        let Some(stdout) = self.stdout.take() else {
            return Ok(None);
        };
        let mut text = String::new();
        stdout
            .take(FAREWELL_LIMIT)
            .read_to_string(&mut text)
            .await?;
        let last = text.lines().last();
        Ok(last.and_then(|line| serde_json::from_str(line).ok()))
    }

    /// Tells the pipeline to take its last checkpoint and to end, and waits for that.
    pub(crate) async fn stop(&mut self) -> Result<Departure, OrdersError> {
        drop(self.stdin.take());
        self.sample_memory();
        match tokio::time::timeout(STOP_BUDGET, self.departed()).await {
            Ok(departure) => departure,
            Err(_elapsed) => {
                self.kill().await;
                Err(OrdersError::Unstoppable { after: STOP_BUDGET })
            }
        }
    }

    /// Ends the process with SIGKILL, if it still runs.
    pub(crate) async fn kill(&mut self) {
        if let Err(error) = self.child.kill().await {
            tracing::debug!(%error, "The pipeline had ended before it could be killed.");
        }
    }
}
