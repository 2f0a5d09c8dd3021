//! pubsub-sink
