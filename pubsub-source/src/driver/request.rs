//! One unary request.

use std::time::Duration;

use bytes::Bytes;
use gcp_wire::{
    Connection, EncodedBody, SubscriptionName,
    method::{ACKNOWLEDGE, MODIFY_ACK_DEADLINE},
};

use super::{
    notices::Journal,
    verdict::{self, CallVerdict},
};
use crate::machine::{CallId, CallMethod};

/// How long a request may take. A lease lasts 10 s at least and is extended well before its end;
/// an answer that takes longer than this is better asked for again.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Sends a request and says what its answer means.
pub(super) async fn send(
    connection: Connection,
    subscription: SubscriptionName,
    journal: Journal,
    call: CallId,
    method: CallMethod,
    body: Bytes,
) -> (CallId, CallVerdict) {
    let body = EncodedBody::from(body);
    let routing = subscription.as_str();
    let outcome = match method {
        CallMethod::Acknowledge => {
            connection
                .call_encoded(&ACKNOWLEDGE, routing, body, TIMEOUT)
                .await
        }
        CallMethod::ModifyAckDeadline => {
            connection
                .call_encoded(&MODIFY_ACK_DEADLINE, routing, body, TIMEOUT)
                .await
        }
    };
    if let Err(error) = &outcome {
        journal.note(error);
    }
    (call, verdict::of_call(&subscription, outcome))
}
