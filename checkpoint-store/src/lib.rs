//! checkpoint-store
