//! gcp-wire
