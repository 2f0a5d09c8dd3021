//! What a dead letter carries.

use cloudtasks_sink::{FullTask, QueueName, TaskError};
use gcp_wire::{NameError, proto::pubsub::PubsubMessage};
use prost::{DecodeError, Message as _};
use pubsub_sink::{PublishMessage, TopicName};
use pubsub_source::Message;

/// The element that a sink rejected, and where it was to go.
#[derive(Debug)]
#[non_exhaustive]
pub enum Element {
    /// Of a Pub/Sub sink.
    Message(TopicName, PublishMessage),
    /// Of a Cloud Tasks sink.
    Task(QueueName, FullTask),
}

/// Why a dead letter cannot be driven again. It stays in the subscription.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// It is not from a queue for dead letters, or from a connector that is not known here.
    #[error("it does not say that it comes from a Pub/Sub or a Cloud Tasks sink")]
    Connector,
    /// The record did not get as far as a payload.
    #[error("it has no payload: the record did not encode, only its source has it")]
    NoPayload,
    /// It does not say where the record was to go.
    #[error("its destination is no name")]
    Destination(#[source] NameError),
    /// The payload is no message.
    #[error("its payload is no message")]
    NoMessage(#[source] DecodeError),
    /// The payload is no task.
    #[error("its payload is no task")]
    NoTask(#[source] TaskError),
}

impl Element {
    /// Takes a dead letter out of its envelope.
    ///
    /// # Errors
    ///
    /// An [`Unusable`] that says what is missing.
    pub fn of(letter: &Message) -> Result<Self, Unusable> {
        let destination = letter.attribute("dlq-destination").unwrap_or_default();
        let connector = letter.attribute("dlq-connector").unwrap_or_default();
        if letter.data().is_empty() {
            return Err(Unusable::NoPayload);
        }
        match connector {
            "pubsub-sink" => {
                let topic = destination.parse().map_err(Unusable::Destination)?;
                let message = PubsubMessage::decode(letter.data().clone());
                Ok(Self::Message(
                    topic,
                    again(message.map_err(Unusable::NoMessage)?),
                ))
            }
            "cloudtasks-sink" => {
                let queue = destination.parse().map_err(Unusable::Destination)?;
                let task = FullTask::decode(letter.data().clone()).map_err(Unusable::NoTask)?;
                // A name of its own: that of the refused task is the service's to remember.
                Ok(Self::Task(queue, task.unnamed()))
            }
            _ => Err(Unusable::Connector),
        }
    }
}

/// The message as its sink had it.
fn again(message: PubsubMessage) -> PublishMessage {
    let PubsubMessage {
        data,
        attributes,
        ordering_key,
        ..
    } = message;
    attributes
        .into_iter()
        .fold(PublishMessage::new(data), |message, (key, value)| {
            message.attribute(key, value)
        })
        .ordering_key(ordering_key)
}
