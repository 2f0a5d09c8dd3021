//! What a pipeline is told to do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use gcp_wire::{QueueName, SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};

use super::super::order::Region;
use super::super::routes::Routes;
use super::super::server::Server;

/// The instructions of a pipeline process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PipelineSpec {
    pub(crate) pubsub: Server,
    pub(crate) tasks: Server,
    pub(crate) subscription: SubscriptionName,
    pub(crate) regions: BTreeMap<Region, TopicName>,
    /// The shards of the tasks, in order.
    pub(crate) queues: Vec<QueueName>,
    pub(crate) routes: Routes,
    /// The only hosts that tasks may call.
    pub(crate) partner_hosts: Vec<String>,
    /// Where the checkpoints are kept.
    pub(crate) state: PathBuf,
    pub(crate) checkpoint_interval: Duration,
    /// Abort once this many orders have been read.
    pub(crate) crash_after: Option<u64>,
    /// Create tasks many in one call.
    pub(crate) batch: bool,
    /// Create each task once, when its checkpoint is committed.
    pub(crate) exactly_once: bool,
}
