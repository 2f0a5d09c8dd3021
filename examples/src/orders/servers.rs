//! The servers of a run: embedded ones, unless running ones were named.

use std::net::Ipv4Addr;

use gcp_emulator::Emulator;

use super::error::OrdersError;
use super::names::RunNames;
use super::options::Options;
use super::process::{Program, TasksProcess};
use super::server::Server;

/// Pub/Sub and Cloud Tasks, as long as the value lives.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) pubsub: Server,
    pub(crate) tasks: Server,
    emulator: Option<Emulator>,
    tasks_process: Option<TasksProcess>,
}

impl Servers {
    pub(crate) async fn start(
        options: &Options,
        program: &Program,
        names: &RunNames,
    ) -> Result<Self, OrdersError> {
        let (pubsub, emulator) = match &options.pubsub {
            Some(address) => {
                let key_file = options.key_file.clone();
                (
                    Server {
                        address: address.clone(),
                        key_file,
                    },
                    None,
                )
            }
            None => {
                let what = "the embedded Pub/Sub server";
                let start = |source| OrdersError::Start { what, source };
                let emulator = Emulator::builder()
                    .cloud_tasks(false)
                    // The figures come from subscriptions and not from the server's memory.
                    .request_history(0)
                    .listen((Ipv4Addr::LOCALHOST, 0).into())
                    .await
                    .map_err(start)?;
                let address = emulator
                    .local_addr()
                    .ok_or_else(|| start(std::io::ErrorKind::AddrNotAvailable.into()))?;
                (Server::emulator(address.to_string()), Some(emulator))
            }
        };
        let (tasks, tasks_process) = match &options.tasks {
            Some(address) => (Server::emulator(address.clone()), None),
            None => {
                let what = "the embedded Cloud Tasks server";
                let process = TasksProcess::start(program, &names.queues)
                    .await
                    .map_err(|source| OrdersError::Start { what, source })?;
                (
                    Server::emulator(process.address().to_owned()),
                    Some(process),
                )
            }
        };
        Ok(Self {
            pubsub,
            tasks,
            emulator,
            tasks_process,
        })
    }

    /// Whether a server goes on after the run.
    pub(crate) const fn outlive_the_run(&self) -> bool {
        self.emulator.is_none() || self.tasks_process.is_none()
    }
}
