//! The child processes: this program again, in another role.

mod pipeline;
mod tasks_server;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};

pub(crate) use pipeline::{Departure, PipelineProcess};
pub(crate) use tasks_server::TasksProcess;

use super::options::Role;

/// The executable that child processes run: one whose `main` is [`main`](super::main).
#[derive(Debug, Clone)]
pub struct Program(PathBuf);

impl Program {
    /// The running executable.
    ///
    /// # Errors
    ///
    /// When the system does not tell its path.
    pub fn current() -> io::Result<Self> {
        std::env::current_exe().map(Self)
    }

    /// Another executable: a test's own does not know the roles.
    #[must_use]
    pub fn at(path: impl AsRef<Path>) -> Self {
        Self(path.as_ref().to_owned())
    }

    /// Starts a child in `role` and writes its instructions.
    ///
    /// The returned input stays open: its end is what tells the child to end, so that a child whose
    /// parent was killed ends too, at the latest when its connectors have given up the servers.
    async fn start<I: serde::Serialize + Sync>(
        &self,
        role: Role,
        instructions: &I,
        stderr: Stdio,
    ) -> io::Result<(Child, ChildStdin)> {
        let mut child = Command::new(&self.0)
            .arg(role.argument())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            // Out of the terminal's group: an interrupt is the parent's to handle, in order.
            .process_group(0)
            .spawn()?;
        let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut line = serde_json::to_vec(instructions)?;
        line.push(b'\n');
        stdin.write_all(&line).await?;
        stdin.flush().await?;
        Ok((child, stdin))
    }
}
