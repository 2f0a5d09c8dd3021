//! Checking the settings against each other, and putting the parts together.

use std::sync::Arc;

use connector_core::{Budget, Epoch, Receipt, Restored, StateError, Versioned};
use gcp_wire::Connection;
use tokio::runtime::Handle;

use super::SinkBuilder;
use crate::{
    BuildError, MissingTopics, PubsubSink, SinkDriver, SinkState, TopicCreation,
    driver::Driver,
    machine::Machine,
    settings::{DEFAULT_LIMITS, in_range},
    shared::Shared,
};

impl<R> SinkBuilder<R> {
    /// Builds the sink and starts its driver on the current Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`BuildError::NoRuntime`] outside a runtime, and what
    /// [`build_with_driver`](Self::build_with_driver) answers. Nothing was connected or restored.
    pub fn build(self) -> Result<PubsubSink<R>, BuildError> {
        let runtime = Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        let (sink, driver) = self.build_with_driver()?;
        driver.spawn_on(&runtime);
        Ok(sink)
    }

    /// Builds the sink and gives its driver to the host, which places it itself.
    ///
    /// # Errors
    ///
    /// A [`BuildError`] that names the setting, or both. Nothing was connected or restored.
    pub fn build_with_driver(self) -> Result<(PubsubSink<R>, SinkDriver), BuildError> {
        let (sink, driver, _) = self.build_parts()?;
        Ok((sink, driver))
    }

    /// As [`build_with_driver`](Self::build_with_driver), with the connection of the driver.
    pub(crate) fn build_parts(
        mut self,
    ) -> Result<(PubsubSink<R>, SinkDriver, Connection), BuildError> {
        self.settings.check()?;
        self.check_together()?;
        if self.settings.ordering {
            self.settings.retry.total = None;
        } else if let Some(total) = self.retry_for {
            self.settings.retry.total = Some(total);
        }
        let resolver = self.resolver.take().ok_or(BuildError::NoDestination)?;
        let newest = newest(&self.instance, &self.restored)?;
        let connection = Connection::unary(self.endpoint, self.credentials, self.connection)
            .map_err(BuildError::Wire)?;

        let budget = self
            .budget
            .unwrap_or_else(|| Budget::new(self.limits.unwrap_or(DEFAULT_LIMITS)));
        let instance: Arc<str> = self.instance.into();
        let member = budget.join(format!("{} {instance}", crate::CONNECTOR));
        let creation = match &self.settings.missing_topics {
            MissingTopics::Create(creation) => creation.clone(),
            MissingTopics::End => TopicCreation::default(),
        };
        let (machine, commit) = Machine::new(self.settings, newest);
        let shared = Arc::new(Shared::new(machine, member, instance));
        let restored = match commit {
            None => Receipt::ready(connector_core::Committed::default()),
            Some(commit) => {
                let (resolver, receipt) = Receipt::channel();
                // A mutex that nobody has seen yet is not poisoned.
                drop(shared.with(|state| state.receipts.commit(commit, resolver)));
                receipt
            }
        };
        let driver = Driver::new(
            Arc::clone(&shared),
            connection.clone(),
            self.handler,
            creation,
        );
        let sink = PubsubSink::new(resolver, self.encoder, shared, restored);
        Ok((sink, SinkDriver::new(driver), connection))
    }

    fn check_together(&self) -> Result<(), BuildError> {
        if self.limits.is_some() && self.budget.is_some() {
            return Err(BuildError::Conflict {
                first: "limits",
                second: "budget",
                reason: "a budget brings limits of its own",
            });
        }
        if self.settings.ordering && self.retry_for.is_some() {
            return Err(BuildError::Conflict {
                first: "message_ordering",
                second: "retry_for",
                reason: "giving up a message would let its successors overtake it; progress_timeout bounds the standstill instead",
            });
        }
        if let Some(limits) = self.limits {
            in_range(
                "limits",
                format_args!("{} messages and {} bytes", limits.items, limits.bytes),
                limits.items > 0 && limits.bytes > 0,
                "at least 1 message and 1 byte, or the sink never has room",
            )?;
        }
        Ok(())
    }
}

/// The newest epoch among the states, each of which must be of this sink.
fn newest(instance: &str, restored: &[Restored<SinkState>]) -> Result<Option<Epoch>, BuildError> {
    for restored in restored {
        let found = restored.state.instance();
        if found != instance {
            return Err(BuildError::State(StateError::OtherInstance {
                connector: SinkState::CONNECTOR,
                found: found.to_owned(),
                expected: instance.to_owned(),
            }));
        }
    }
    Ok(restored.iter().map(|restored| restored.epoch).max())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use connector_core::Limits;

    use super::*;
    use crate::PublishMessage;

    fn builder() -> SinkBuilder<Vec<u8>> {
        PubsubSink::builder(|record: &Vec<u8>| Ok(Some(PublishMessage::new(record.clone()))))
            .topic("projects/demo/topics/orders".parse().unwrap())
    }

    #[test]
    fn outside_a_runtime_build_is_an_error_and_no_panic() {
        assert!(matches!(builder().build(), Err(BuildError::NoRuntime)));
    }

    #[test]
    fn without_a_destination_nothing_is_built() {
        let builder: SinkBuilder<u32> = PubsubSink::builder(|_: &u32| Ok(None));
        assert!(matches!(
            builder.build_with_driver(),
            Err(BuildError::NoDestination)
        ));
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused_with_both_names() {
        let shared = Budget::new(Limits::items(10));
        let both = builder().limits(Limits::items(5)).budget(shared);
        assert!(matches!(
            both.build_with_driver(),
            Err(BuildError::Conflict {
                first: "limits",
                second: "budget",
                ..
            })
        ));
        let both = builder()
            .message_ordering(true)
            .retry_for(Duration::from_secs(60));
        assert!(matches!(
            both.build_with_driver(),
            Err(BuildError::Conflict {
                first: "message_ordering",
                second: "retry_for",
                ..
            })
        ));
        assert!(matches!(
            builder().limits(Limits::new(0, 1)).build_with_driver(),
            Err(BuildError::OutOfRange {
                setting: "limits",
                ..
            })
        ));
    }

    #[test]
    fn a_state_of_another_instance_is_refused_with_both_names() {
        let state = Restored::new(Epoch::new(3), SinkState::flushed("a"));
        match builder().instance("b").restore([state]).build_with_driver() {
            Err(BuildError::State(StateError::OtherInstance {
                found, expected, ..
            })) => {
                assert_eq!((found.as_str(), expected.as_str()), ("a", "b"));
            }
            other => panic!("{other:?}"),
        }
    }
}
