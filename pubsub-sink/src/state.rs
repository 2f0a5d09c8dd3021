//! What the host saves of a sink.

use bytes::Bytes;
use connector_core::{StateError, Versioned, serde_through_envelope};
use prost::Message;

/// The state of a sink at an epoch.
///
/// A flushing sink holds nothing back: by the time its snapshot receipt resolves everything before
/// the cut is stored by the service, skipped, or in the failure handler's hands. So the state names
/// no items, and a host that loses it loses nothing; it is saved so that it is told when a state of
/// another sink, or of a sink that holds items back, is given to the wrong builder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkState {
    instance: String,
}

/// Body of format version 1. Tags are never reused.
#[derive(Clone, PartialEq, Message)]
struct BodyV1 {
    /// How the sink settles: [`FLUSHED`] is the only way this format knows.
    #[prost(uint32, tag = "1")]
    mode: u32,
}

/// Everything before the cut was delivered before the state was given out.
const FLUSHED: u32 = 1;

impl SinkState {
    pub(crate) fn flushed(instance: impl Into<String>) -> Self {
        Self {
            instance: instance.into(),
        }
    }

    const fn damaged(version: u32, problem: &'static str) -> StateError {
        StateError::Damaged {
            connector: Self::CONNECTOR,
            version,
            problem,
        }
    }
}

impl Versioned for SinkState {
    const CONNECTOR: &'static str = "pubsub-sink";
    const VERSION: u32 = 1;

    fn instance(&self) -> &str {
        &self.instance
    }

    fn encode_body(&self) -> Bytes {
        BodyV1 { mode: FLUSHED }.encode_to_vec().into()
    }

    fn decode_body(version: u32, instance: &str, body: Bytes) -> Result<Self, StateError> {
        if version != Self::VERSION {
            return Err(StateError::UnknownVersion {
                connector: Self::CONNECTOR,
                found: version,
                newest: Self::VERSION,
            });
        }
        let decoded = BodyV1::decode(body.clone())
            .map_err(|_| Self::damaged(version, "the body is not a message"))?;
        if decoded.mode != FLUSHED {
            return Err(Self::damaged(version, "the way of settling is not known"));
        }
        // prost skips unknown fields. Here they could be items that would then be lost unseen.
        if decoded.encode_to_vec() != body {
            return Err(Self::damaged(
                version,
                "the body holds more than this format has",
            ));
        }
        Ok(Self::flushed(instance))
    }
}

serde_through_envelope!(SinkState);

#[cfg(test)]
mod tests {
    use connector_core::SavedState;
    use proptest::prelude::*;

    use super::*;

    const GOLDEN_V1: &[u8] = include_bytes!("../tests/data/state-v1.bin");

    #[test]
    fn the_golden_file_of_version_1_decodes_and_is_what_is_written() {
        let state = SinkState::flushed("0");
        let decoded: SavedState = postcard::from_bytes(GOLDEN_V1).unwrap();
        assert_eq!(decoded.open::<SinkState>().unwrap(), state);
        assert_eq!(postcard::to_allocvec(&state).unwrap(), GOLDEN_V1);
    }

    #[test]
    fn a_body_with_unknown_fields_is_damaged_and_not_trimmed() {
        let mut body = SinkState::flushed("0").encode_body().to_vec();
        body.extend_from_slice(&[0x12, 1, b'x']);
        assert!(matches!(
            SinkState::decode_body(1, "0", body.into()),
            Err(StateError::Damaged { version: 1, .. })
        ));
    }

    #[test]
    fn an_unknown_version_is_an_error_that_names_both() {
        let error = SinkState::decode_body(2, "0", Bytes::new()).unwrap_err();
        assert_eq!(
            error,
            StateError::UnknownVersion {
                connector: "pubsub-sink",
                found: 2,
                newest: 1
            }
        );
    }

    proptest! {
        #[test]
        fn bytes_from_outside_never_panic_and_only_the_canonical_body_decodes(
            version in 0u32..4,
            body in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let expected = version == 1 && body == [0x08, 0x01];
            prop_assert_eq!(SinkState::decode_body(version, "0", body.into()).is_ok(), expected);
        }
    }
}
