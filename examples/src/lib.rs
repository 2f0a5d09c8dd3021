#![doc = include_str!("../README.md")]

pub mod orders;
pub mod replay;
pub mod replicas;

/// The workspace's README, so that its program is compiled with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
