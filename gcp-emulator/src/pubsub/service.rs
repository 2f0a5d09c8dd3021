//! The gRPC side of Pub/Sub.

mod publisher;
mod pulling;
mod subscriber;

pub(crate) use publisher::PublisherService;
pub(crate) use subscriber::SubscriberService;

pub(crate) use publisher::generated::publisher_server::PublisherServer;
pub(crate) use subscriber::generated::subscriber_server::SubscriberServer;

use tonic::Status;

use crate::fault::Answer;
use crate::front::{self, Refused};
use crate::pubsub::state::Refusal;

impl Refused for Refusal {
    fn status(self) -> Status {
        if let Self::AckIds { failures } = &self {
            let named = failures.iter().map(|(id, why)| (id.as_str(), why.reason()));
            return front::status(&Answer::ack_ids(named));
        }
        Status::new(
            tonic::Code::from_i32(self.code().number()),
            self.to_string(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::state::AckFailure;

    #[test]
    fn the_scripted_and_the_real_refusal_of_ack_ids_say_the_same() {
        let failures = [("a".to_owned(), AckFailure::InvalidAckId)].into();
        let refusal = Refusal::AckIds { failures };
        let status = refusal.clone().status();
        assert_eq!(status.message(), refusal.to_string());
        assert_eq!(i32::from(status.code()), refusal.code().number());
        assert!(!status.details().is_empty());
    }
}
