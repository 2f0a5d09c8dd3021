//! The embedded Cloud Tasks server's process, as its parent sees it.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use gcp_wire::QueueName;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin};

use super::super::options::Role;
use super::Program;

/// Binding a port takes milliseconds.
const START_BUDGET: Duration = Duration::from_secs(30);

/// A running `cloud-tasks-emulator`; dropping it ends it.
///
/// It has a process of its own because it writes a line to standard error per dispatch, which would
/// run through the progress display; there it goes nowhere.
#[derive(Debug)]
pub(crate) struct TasksProcess {
    address: String,
    _child: Child,
    _stdin: ChildStdin,
}

impl TasksProcess {
    pub(crate) async fn start(program: &Program, queues: &[QueueName]) -> io::Result<Self> {
        let (mut child, stdin) = program
            .start(Role::TasksServer, &queues, Stdio::null())
            .await?;
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut lines = BufReader::new(stdout).lines();
        let address = tokio::time::timeout(START_BUDGET, lines.next_line())
            .await
            .map_err(|_elapsed| io::ErrorKind::TimedOut)??
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Self {
            address,
            _child: child,
            _stdin: stdin,
        })
    }

    /// Where it listens, `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}
