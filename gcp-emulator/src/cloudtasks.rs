//! The Cloud Tasks server: the create path, without dispatch.

pub mod proto;
pub(crate) mod service;
pub mod state;
