//! The role of the embedded Cloud Tasks server's process.

use std::io;
use std::net::Ipv4Addr;

use gcp_wire::QueueName;
use tokio::net::TcpListener;

use super::instructions::Instructions;

/// Serves the queues named in the instructions until standard input ends.
pub(crate) async fn serve() -> Result<(), TasksServerError> {
    let (queues, told_to_end) = Instructions::<Vec<QueueName>>::read()?.split();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    println!("{address}");
    let queues = queues.iter().map(ToString::to_string).collect();
    let serving = cloud_tasks_emulator::serve(listener, format!("http://{address}"), queues);
    tokio::select! {
        ended = serving => ended.map_err(TasksServerError::Serve),
        () = told_to_end.wait() => Ok(()),
    }
}

/// Why the server could not serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TasksServerError {
    #[error("the Cloud Tasks server could not be set up; no task was taken")]
    Io(#[from] io::Error),
    #[error("the Cloud Tasks server ended; its tasks are gone with it")]
    Serve(#[source] Box<dyn std::error::Error + Send + Sync>),
}
