//! What the host saves of the sink with each checkpoint.

use bytes::Bytes;
use connector_core::{StateError, Versioned, serde_through_envelope};
use prost::Message;

/// The kind of connector, in saved states and rejected records.
pub(crate) const CONNECTOR: &str = "cloudtasks-sink";

/// The sink's part of a checkpoint.
///
/// The receipt of a snapshot resolves when every record before the cut is a task (or was handed to
/// the failure handler), so nothing of them has to be saved: the state says who wrote it and that
/// nothing is owed. Restoring it tells the sink which epochs are taken.
///
/// Serializes as a [`SavedState`](connector_core::SavedState); every format version ever released
/// stays readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkState {
    instance: String,
    delivery: Delivery,
}

/// How the sink that wrote a state delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum Delivery {
    Unspecified = 0,
    /// Everything before the cut is delivered when the receipt resolves.
    Flush = 1,
}

/// Version 1 of the body. Fields may be added under new tags as long as an older build may ignore
/// them; anything else is version 2.
#[derive(Clone, PartialEq, Message)]
struct BodyV1 {
    #[prost(enumeration = "Delivery", tag = "1")]
    delivery: i32,
}

impl SinkState {
    /// The state of a sink that owes nothing.
    pub(crate) fn flushed(instance: &str) -> Self {
        Self {
            instance: instance.to_owned(),
            delivery: Delivery::Flush,
        }
    }
}

impl Versioned for SinkState {
    const CONNECTOR: &'static str = CONNECTOR;
    const VERSION: u32 = 1;

    fn instance(&self) -> &str {
        &self.instance
    }

    fn encode_body(&self) -> Bytes {
        BodyV1 {
            delivery: self.delivery.into(),
        }
        .encode_to_vec()
        .into()
    }

    fn decode_body(version: u32, instance: &str, body: Bytes) -> Result<Self, StateError> {
        let damaged = |problem| StateError::Damaged {
            connector: CONNECTOR,
            version,
            problem,
        };
        match version {
            1 => {
                let body =
                    BodyV1::decode(body).map_err(|_| damaged("it is no protobuf message"))?;
                match Delivery::try_from(body.delivery) {
                    Ok(Delivery::Flush) => Ok(Self {
                        instance: instance.to_owned(),
                        delivery: Delivery::Flush,
                    }),
                    Ok(Delivery::Unspecified) => Err(damaged("the delivery mode is missing")),
                    Err(_) => Err(damaged("the delivery mode is unknown")),
                }
            }
            found => Err(StateError::UnknownVersion {
                connector: CONNECTOR,
                found,
                newest: Self::VERSION,
            }),
        }
    }
}

serde_through_envelope!(SinkState);

#[cfg(test)]
mod tests;
