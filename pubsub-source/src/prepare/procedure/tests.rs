//! A start against a model of the service and of the store.

mod laws;
mod scripted;
mod told;
mod world;
