//! The server, in a process of its own.

use std::{io::Write as _, num::NonZeroU32, process::Stdio, time::Duration};

use clap::Args;
use gcp_emulator::flood::{Flood, FloodCounts, serve};
use measure::Failure;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpListener,
    process::{Child, Command},
};

/// What the server is to do.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct FloodServer {
    /// The port on 127.0.0.1; 0 for one that is free, which is printed.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Bytes of a pulled message's payload.
    #[arg(long, default_value_t = 16)]
    pub(crate) payload_bytes: usize,
    /// Messages per pull response.
    #[arg(long, default_value_t = 100)]
    pub(crate) per_response: usize,
    /// Messages per second over all pull streams.
    #[arg(long)]
    pub(crate) rate: Option<NonZeroU32>,
    /// How long publishes and creations take.
    #[arg(long, default_value_t = 0)]
    pub(crate) delay_ms: u64,
    /// Streams a connection may have at once.
    #[arg(long)]
    pub(crate) streams_per_connection: Option<u32>,
}

impl FloodServer {
    /// Serves until it is killed, or until the program that started it is gone; then it prints what
    /// it has seen.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await?;
        println!("listening on {}", listener.local_addr()?);
        std::io::stdout().flush()?;
        let mut flood = Flood::default();
        flood.payload_bytes = self.payload_bytes;
        flood.per_response = self.per_response;
        flood.rate = self.rate;
        flood.delay = Duration::from_millis(self.delay_ms);
        flood.streams_per_connection = self.streams_per_connection;
        let mut last = FloodCounts::default();
        let watch = |counts: FloodCounts| {
            if counts != last {
                tracing::info!(?counts, "a second");
                last = counts;
            }
        };
        tokio::select! {
            served = serve(listener, flood, watch) => served?,
            () = orphaned() => {}
        }
        println!("{}", line(&last));
        Ok(())
    }

    /// Starts it, unless there is another one to be measured against. Lives as long as what is
    /// returned.
    pub(crate) async fn unless(
        &self,
        endpoint: &Option<String>,
    ) -> Result<(Option<Child>, String), Failure> {
        match endpoint {
            Some(address) => Ok((None, address.clone())),
            None => {
                let (child, address) = self.start().await?;
                Ok((Some(child), address))
            }
        }
    }

    /// Starts it in another process.
    async fn start(&self) -> Result<(Child, String), Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("flood")
            .args(["--payload-bytes", &self.payload_bytes.to_string()])
            .args(["--per-response", &self.per_response.to_string()])
            .args(["--delay-ms", &self.delay_ms.to_string()]);
        if let Some(rate) = self.rate {
            command.args(["--rate", &rate.to_string()]);
        }
        if let Some(streams) = self.streams_per_connection {
            command.args(["--streams-per-connection", &streams.to_string()]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the server has no output")?;
        let line = BufReader::new(stdout).lines().next_line().await?;
        let line = line.ok_or("the server ended before it listened")?;
        let address = line.rsplit(' ').next().unwrap_or_default().to_owned();
        Ok((child, address))
    }
}

/// What the server has seen by its last second, as a line of JSON.
fn line(counts: &FloodCounts) -> serde_json::Value {
    serde_json::json!({
        "delivered": counts.delivered,
        "acknowledged": counts.acknowledged,
        "extended": counts.extended,
        "released": counts.released,
        "published": counts.published,
        "created": counts.created,
        "requests": counts.requests,
    })
}

/// Resolves when the other end of the standard input is gone, with the process that held it.
async fn orphaned() {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(_)) = lines.next_line().await {}
}
