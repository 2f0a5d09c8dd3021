//! Checking the settings against each other, and putting the parts together.

use std::sync::Arc;

use connector_core::{Budget, Receipt};
use gcp_wire::Connection;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::{SinkBuilder, restored::resumed};
use crate::{
    BuildError, MissingTopics, PubsubSink, SinkDriver, TopicCreation,
    driver::Driver,
    machine::Machine,
    settings::{DEFAULT_LIMITS, IdentityAttributes, positive},
    shared::Shared,
    staged::Minting,
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
        self.check_together()?;
        self.settings.stage = self.stage.unwrap_or(self.settings.stage);
        self.settings.quarantine = self.quarantine.unwrap_or(self.settings.quarantine);
        self.settings.check()?;
        if self.settings.ordering {
            self.settings.retry.total = None;
        } else if let Some(total) = self.retry_for {
            self.settings.retry.total = Some(total);
        }
        let resolver = self.resolver.take().ok_or(BuildError::NoDestination)?;
        let delivery = self.settings.delivery;
        let resumed = resumed(&self.instance, delivery, &self.restored)?;
        let connection = Connection::unary(self.endpoint, self.credentials, self.connection)
            .map_err(BuildError::Wire)?;

        let limits = if delivery.is_staged() {
            self.settings.stage
        } else {
            self.limits.unwrap_or(DEFAULT_LIMITS)
        };
        let budget = self.budget.unwrap_or_else(|| Budget::new(limits));
        let instance: Arc<str> = self.instance.into();
        let member = budget.join(format!("{} {instance}", crate::CONNECTOR));
        let creation = match &self.settings.missing_topics {
            MissingTopics::Create(creation) => creation.clone(),
            MissingTopics::End => TopicCreation::default(),
        };
        let (machine, commit) = Machine::new(self.settings, resumed);
        if machine.held().items > 0 {
            member.charge(machine.held());
        }
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
        let minting = delivery
            .is_staged()
            .then(|| Minting::new(Uuid::new_v4().as_u128()));
        let (attributes, trace) = (self.identity_attributes, self.trace);
        let sink = PubsubSink::new(
            resolver,
            self.encoder,
            shared,
            minting,
            attributes,
            trace,
            restored,
        );
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
        self.check_delivery()?;
        if let Some(limits) = self.limits {
            let allowed = "at least 1 message and 1 byte, or the sink never has room";
            positive("limits", limits, allowed)?;
        }
        Ok(())
    }

    /// What goes with the one way of delivery only.
    fn check_delivery(&self) -> Result<(), BuildError> {
        let staged = self.settings.delivery.is_staged();
        let conflicts = [
            (
                "limits",
                self.limits.is_some(),
                "what waits for a commit is bounded by stage",
            ),
            (
                "budget",
                self.budget.is_some(),
                "the others of the budget would wait for this sink's commit, stage bounds it instead",
            ),
        ];
        for (second, set, reason) in conflicts {
            if staged && set {
                return Err(BuildError::Conflict {
                    first: "delivery",
                    second,
                    reason,
                });
            }
        }
        let nothing_waits = "a flushing sink holds nothing for a commit";
        let staged_only = [
            ("stage", self.stage.is_some(), nothing_waits),
            ("quarantine", self.quarantine.is_some(), nothing_waits),
            (
                "identity_attributes",
                self.identity_attributes.is_some(),
                "a flushing sink does not know a message again after a crash",
            ),
        ];
        for (setting, set, reason) in staged_only {
            if !staged && set {
                return Err(BuildError::Incomplete {
                    setting,
                    needs: "delivery(Delivery::Staged)",
                    reason,
                });
            }
        }
        self.identity_attributes
            .as_ref()
            .map_or(Ok(()), IdentityAttributes::check)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use connector_core::{Epoch, Limits, Restored, StateError};

    use super::*;
    use crate::{Delivery, PublishMessage, SinkState};

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

    #[test]
    fn settings_of_the_other_way_of_delivery_are_refused_with_both_names() {
        let staged = || builder().delivery(Delivery::Staged);
        let refused = [
            (staged().limits(Limits::items(5)), "limits"),
            (staged().budget(Budget::new(Limits::items(5))), "budget"),
            (builder().stage(Limits::items(5)), "stage"),
            (builder().quarantine(Limits::items(5)), "quarantine"),
            (
                builder().identity_attributes("incarnation", "sequence"),
                "identity_attributes",
            ),
        ];
        for (builder, name) in refused {
            let error = builder.build_with_driver().unwrap_err().to_string();
            assert!(
                error.contains(name) && error.contains("delivery"),
                "{error}"
            );
        }
        let built = staged()
            .stage(Limits::items(5))
            .quarantine(Limits::items(5))
            .identity_attributes("incarnation", "sequence")
            .build_with_driver();
        assert!(built.is_ok());
    }
}
