//! What a child process is told: one line of JSON, then the end of standard input.

use std::io;

use serde::de::DeserializeOwned;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// What a child process was told to do, and how it learns that it is to end.
#[derive(Debug)]
pub(crate) struct Instructions<I> {
    what: I,
    end: ToldToEnd,
}

impl<I: DeserializeOwned> Instructions<I> {
    /// Reads the first line of standard input and goes on watching it.
    ///
    /// Must be called on a Tokio runtime.
    pub(crate) fn read() -> io::Result<Self> {
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        let what = serde_json::from_str(&line)?;
        Ok(Self {
            what,
            end: ToldToEnd::watch()?,
        })
    }

    pub(crate) fn split(self) -> (I, ToldToEnd) {
        (self.what, self.end)
    }
}

/// The end of standard input or SIGTERM, whichever comes first.
#[derive(Debug)]
pub(crate) struct ToldToEnd {
    input: oneshot::Receiver<()>,
    terminate: Signal,
}

impl ToldToEnd {
    fn watch() -> io::Result<Self> {
        let (ended, input) = oneshot::channel();
        // A thread of its own and not Tokio's standard input: a read that is still under way there
        // would keep the runtime, and with it a process that failed, from ending.
        std::thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || {
                // Whatever ends the input ends the work, an error too.
                drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
                // Nobody may be waiting any more.
                ended.send(()).unwrap_or_default();
            })?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { input, terminate })
    }

    /// Waits until the process is told to end.
    pub(crate) async fn wait(mut self) {
        tokio::select! {
            _ = self.input => {}
            _ = self.terminate.recv() => {}
        }
    }
}
