#![doc = include_str!("../README.md")]

pub mod axum_service;
pub mod backfill_from_timestamp;
pub mod copy;
pub mod custom_engine;
#[cfg(feature = "sqlite")]
pub mod exactly_once_effects;
pub mod fan_out;
pub mod figures;
pub mod hourly_totals;
pub mod ordered;
pub mod orders;
pub mod process;
pub mod program;
pub mod replay;
pub mod replicas;
pub mod shard_queues;
pub mod shop;
pub mod tasks_once;

/// The workspace's README, so that its program is compiled with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
