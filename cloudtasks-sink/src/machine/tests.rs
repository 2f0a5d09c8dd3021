//! One machine, one behaviour, scripted; and the laws of the machine under random histories.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names the variant it means; any other fails it"
)]

mod attempts;
mod cuts;
mod ending;
mod handling;
mod kept;
mod late;
mod laws;
mod names;
mod retrying;
mod script;
mod stage;
mod staging;

use std::time::Duration;

use connector_core::{RejectedReason, Verdict};
use gcp_wire::Code;
use gcp_wire::proto::tasks::Task;
use prost::Message;

use super::*;
use crate::naming::Named;
use script::{Script, created, failed};

const SECOND: Duration = Duration::from_secs(1);
