//! The routing header.

use tonic::Status;

use crate::call::Call;
use crate::method::Method;

/// The metadata entry that names the resource, so that a front end can route without decoding.
const HEADER: &str = "x-goog-request-params";

/// Refuses a call whose routing header does not name its resource under the key of its method.
pub(crate) fn check(call: &Call) -> Result<(), Status> {
    let Some(resource) = call.resource() else {
        return Ok(());
    };
    let key = key(call.method);
    let given = call.metadata.get(HEADER).map_or("", String::as_str);
    let named = given
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .any(|(name, value)| {
            decoded(name).as_deref() == Some(key) && decoded(value).as_deref() == Some(resource)
        });
    if named {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "The {HEADER} header must contain {key}={resource}; it was {given:?}."
    )))
}

/// The field a method is routed by (the `google.api.http` annotations of the interface).
const fn key(method: Method) -> &'static str {
    match method {
        Method::CreateTopic
        | Method::CreateSubscription
        | Method::CreateSnapshot
        | Method::GetQueue
        | Method::DeleteQueue
        | Method::PurgeQueue
        | Method::PauseQueue
        | Method::ResumeQueue
        | Method::GetTask
        | Method::DeleteTask
        | Method::RunTask
        | Method::GetOperation => "name",
        Method::UpdateTopic => "topic.name",
        Method::UpdateQueue => "queue.name",
        Method::UpdateSubscription => "subscription.name",
        Method::UpdateSnapshot => "snapshot.name",
        Method::Publish
        | Method::GetTopic
        | Method::ListTopicSubscriptions
        | Method::ListTopicSnapshots
        | Method::DeleteTopic => "topic",
        Method::ListTopics | Method::ListSubscriptions | Method::ListSnapshots => "project",
        Method::DetachSubscription
        | Method::GetSubscription
        | Method::DeleteSubscription
        | Method::ModifyAckDeadline
        | Method::Acknowledge
        | Method::Pull
        | Method::StreamingPull
        | Method::ModifyPushConfig
        | Method::Seek => "subscription",
        Method::GetSnapshot | Method::DeleteSnapshot => "snapshot",
        Method::ListQueues
        | Method::CreateQueue
        | Method::ListTasks
        | Method::CreateTask
        | Method::BatchCreateTasks => "parent",
    }
}

/// Undoes percent-encoding; text that is none is `None`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let (digits, after) = after.split_at_checked(2)?;
            let digits = std::str::from_utf8(digits)
                .ok()
                .filter(|two| !two.starts_with('+'))?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_undone() {
        assert_eq!(
            decoded("projects%2Fexample.com%3Ademo").as_deref(),
            Some("projects/example.com:demo")
        );
        assert_eq!(decoded("plain").as_deref(), Some("plain"));
        for bad in ["%", "%2", "%zz", "%+1", "%ff"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}
