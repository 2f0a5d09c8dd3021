//! A rejected record as a message.

use std::time::SystemTime;

use connector_core::Rejected;
use gcp_wire::proto::Timestamp;

use crate::{PublishMessage, excerpt::excerpt};

/// The dead letter of a rejected record.
pub(super) fn wrap(rejected: &Rejected, instance: &str, at: SystemTime) -> PublishMessage {
    let error = match &rejected.source {
        Some(source) => source.to_string(),
        None => format!("rejected without a cause ({:?})", rejected.reason),
    };
    let letter = PublishMessage::new(rejected.payload.clone().unwrap_or_default())
        .attribute("dlq-connector", rejected.connector)
        .attribute("dlq-destination", excerpt(&rejected.destination))
        .attribute("dlq-error", excerpt(&error))
        .attribute("dlq-timestamp", Timestamp::from(at).to_string())
        .attribute("dlq-subtask", instance);
    match rejected.epoch {
        Some(epoch) => letter.attribute("dlq-epoch", epoch.to_string()),
        None => letter,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        time::{Duration, UNIX_EPOCH},
    };

    use connector_core::{Cause, Epoch, RejectedReason};
    use proptest::prelude::*;

    use super::*;
    use crate::message;

    fn bare() -> Rejected {
        Rejected::new("cloudtasks-sink", "unresolved", RejectedReason::Encoding)
    }

    #[test]
    fn a_record_without_payload_has_all_five_attributes() {
        let at = UNIX_EPOCH + Duration::from_millis(1_796_036_400_250);
        let cause = Cause::new(io::Error::other("no such field"));
        let letter = wrap(&bare().source(cause), "7", at);
        assert!(letter.payload().is_empty());
        let attributes: Vec<(&str, &str)> = letter
            .attributes()
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let expected = [
            ("dlq-connector", "cloudtasks-sink"),
            ("dlq-destination", "unresolved"),
            ("dlq-error", "no such field"),
            ("dlq-subtask", "7"),
            ("dlq-timestamp", "2026-11-30T11:00:00.250Z"),
        ];
        assert_eq!(attributes, expected);
        assert_eq!(letter.key(), None);
    }

    #[test]
    fn the_epoch_is_named_when_it_is_known_and_a_missing_cause_by_its_reason() {
        let letter = wrap(&bare().epoch(Epoch::new(12)), "0", UNIX_EPOCH);
        assert_eq!(letter.attributes()["dlq-epoch"], "12");
        assert!(letter.attributes()["dlq-error"].contains("Encoding"));
    }

    proptest! {
        #[test]
        fn every_dead_letter_is_a_message_that_the_service_takes(
            destination in "\\PC{0,1200}",
            error in "\\PC{0,1200}",
            payload in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let mut rejected = bare()
                .payload(payload.into())
                .source(Cause::new(io::Error::other(error)));
            rejected.destination = destination;
            let letter = wrap(&rejected, "0", UNIX_EPOCH);
            message::check(&letter, 100, 10_000_000).unwrap();
        }
    }
}
