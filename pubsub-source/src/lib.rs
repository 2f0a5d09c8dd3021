//! pubsub-source
