//! From settings to a dead-letter queue.

use std::{sync::Arc, time::Duration};

use connector_core::Limits;
use gcp_wire::{Credentials, Endpoint, Service, TopicName};
use tokio::runtime::Handle;

use super::{DeadLetterDriver, PubsubDeadLetterQueue, desk::Desk};
use crate::{
    BuildError, MissingTopics, PublishMessage, PubsubSink,
    settings::{DEFAULT_LIMITS, in_range},
};

/// How many dead letters may have their verdict before they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outstanding {
    /// None: a rejected record holds its room in the sink until its dead letter is stored.
    WriteThrough,
    /// Below so many, and so many encoded bytes.
    Below(Limits),
    /// Any number. Memory is then bounded by nothing but the checkpoints' flushes.
    Unbounded,
}

/// 1,000 dead letters and 64 MiB, as many as a sink has records in flight: a burst of rejections
/// costs no more memory than its records did.
impl Default for Outstanding {
    fn default() -> Self {
        Self::Below(DEFAULT_LIMITS)
    }
}

impl Outstanding {
    const fn limits(self) -> Limits {
        match self {
            Self::WriteThrough => Limits::new(0, 0),
            Self::Below(limits) => limits,
            Self::Unbounded => UNLIMITED,
        }
    }
}

const UNLIMITED: Limits = Limits::new(usize::MAX, usize::MAX);

/// Settings of a [`PubsubDeadLetterQueue`].
///
/// There is none for what the topic itself refuses: that ends the queue. There is none for creating
/// the topic either, since nothing would read a topic that was just created.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build() is called"]
pub struct DeadLetterBuilder {
    topic: TopicName,
    endpoint: Endpoint,
    credentials: Credentials,
    instance: String,
    outstanding: Outstanding,
    flush_timeout: Duration,
    shutdown_timeout: Duration,
}

impl DeadLetterBuilder {
    pub(super) fn new(topic: TopicName) -> Self {
        Self {
            topic,
            endpoint: Endpoint::production(Service::Pubsub),
            credentials: Credentials::application_default(),
            instance: "0".to_owned(),
            outstanding: Outstanding::default(),
            flush_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(30),
        }
    }

    /// The server. Default: the service in production; the sink's is not taken over.
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// The credentials. Default: Google's application-default ones; the sink's are not taken over,
    /// since the topic may lie in another project.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// What `dlq-subtask` says: give the same as to the sink's `instance`. At most 1,024 bytes.
    /// Default `0`, as the sink's.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = name.into();
        self
    }

    /// How many dead letters may have their verdict before they are stored. Default 1,000 and
    /// 64 MiB.
    ///
    /// Beyond it a rejected record waits for its verdict and holds its room in the sink, so an
    /// outage of this topic slows the sink down instead of filling memory. Whatever is chosen, a
    /// snapshot waits for every dead letter.
    pub fn max_outstanding(mut self, outstanding: Outstanding) -> Self {
        self.outstanding = outstanding;
        self
    }

    /// How long each flush waits, at least 1 ms. Default 60 s.
    ///
    /// A flush that takes longer fails, and with it the snapshot that asked for it; the dead letters
    /// stay owed to the next. Long enough for a short outage of the service, short enough for the
    /// host to hear of a long one. They are tried for 600 s in all, then the queue ends.
    pub fn flush_timeout(mut self, timeout: Duration) -> Self {
        self.flush_timeout = timeout;
        self
    }

    /// How long dead letters are still sent after the queue was dropped, at least 1 ms. Default 30 s.
    ///
    /// The queue is dropped when its sink has ended, so this comes after the sink's own
    /// `close_timeout`. A sink that was closed in good order has flushed, and leaves nothing.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Builds the queue and starts its driver on the current Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`BuildError::NoRuntime`] outside a runtime, and what
    /// [`build_with_driver`](Self::build_with_driver) answers. Nothing was connected.
    pub fn build(self) -> Result<PubsubDeadLetterQueue, BuildError> {
        let runtime = Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        let (queue, driver) = self.build_with_driver()?;
        driver.spawn_on(&runtime);
        Ok(queue)
    }

    /// Builds the queue and gives its driver to the host, which places it itself.
    ///
    /// # Errors
    ///
    /// A [`BuildError`] that names the setting. Nothing was connected.
    pub fn build_with_driver(
        self,
    ) -> Result<(PubsubDeadLetterQueue, DeadLetterDriver), BuildError> {
        self.check()?;
        // Its handler stays `Fail`: a dead letter that is refused has nowhere else to go.
        let (sink, publisher, connection) =
            PubsubSink::builder(|letter: &PublishMessage| Ok(Some(letter.clone())))
                .topic(self.topic.clone())
                .endpoint(self.endpoint)
                .credentials(self.credentials)
                .instance(format!("{} dead letters", self.instance))
                .missing_topics(MissingTopics::End)
                // What bounds the dead letters is their verdict.
                .limits(UNLIMITED)
                .close_timeout(self.shutdown_timeout)
                .build_parts()?;
        let desk = Arc::new(Desk::new(self.outstanding.limits()));
        let instance: Arc<str> = self.instance.into();
        let driver = DeadLetterDriver::new(
            Arc::clone(&desk),
            publisher,
            connection,
            self.topic.clone(),
            Arc::clone(&instance),
        );
        let queue = PubsubDeadLetterQueue {
            sink,
            desk,
            topic: self.topic,
            instance,
            flush_timeout: self.flush_timeout,
        };
        Ok((queue, driver))
    }

    fn check(&self) -> Result<(), BuildError> {
        in_range(
            "instance",
            format_args!("{} bytes long", self.instance.len()),
            crate::excerpt::fits(&self.instance),
            "at most 1024 bytes, the longest attribute Pub/Sub takes",
        )?;
        if let Outstanding::Below(limits) = self.outstanding {
            in_range(
                "max_outstanding",
                format_args!("{} dead letters and {} bytes", limits.items, limits.bytes),
                limits.items > 0 && limits.bytes > 0,
                "at least 1 dead letter and 1 byte; for none use Outstanding::WriteThrough",
            )?;
        }
        for (setting, span) in [
            ("flush_timeout", self.flush_timeout),
            ("shutdown_timeout", self.shutdown_timeout),
        ] {
            in_range(
                setting,
                format_args!("{}s", span.as_secs_f64()),
                span >= Duration::from_millis(1),
                "at least 1 ms",
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> DeadLetterBuilder {
        DeadLetterBuilder::new("projects/demo/topics/rejected".parse().unwrap())
    }

    #[test]
    fn the_defaults_are_those_documented() {
        let builder = builder();
        assert_eq!(
            builder.outstanding,
            Outstanding::Below(Limits::new(1_000, 67_108_864))
        );
        assert_eq!(builder.flush_timeout, Duration::from_secs(60));
        assert_eq!(builder.shutdown_timeout, Duration::from_secs(30));
        assert_eq!(builder.instance, "0");
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let refused = [
            (builder().flush_timeout(Duration::ZERO), "flush_timeout"),
            (
                builder().shutdown_timeout(Duration::ZERO),
                "shutdown_timeout",
            ),
            (builder().instance("x".repeat(1_025)), "instance"),
            (
                builder().max_outstanding(Outstanding::Below(Limits::new(0, 1))),
                "max_outstanding",
            ),
        ];
        for (builder, name) in refused {
            let error = builder.build_with_driver().unwrap_err();
            assert!(error.to_string().starts_with(name), "{error}");
        }
    }

    #[test]
    fn outside_a_runtime_there_is_an_error_and_no_panic() {
        assert!(matches!(builder().build(), Err(BuildError::NoRuntime)));
    }
}
