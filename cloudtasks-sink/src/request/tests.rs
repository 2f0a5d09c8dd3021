use std::time::{Duration, SystemTime};

use gcp_wire::proto::tasks::{CreateTaskRequest, Task};
use proptest::prelude::*;

use super::*;
use crate::{HttpMethod, HttpTask, TaskRetries};

fn queue() -> QueueName {
    "projects/p/locations/l/queues/q".parse().unwrap()
}

/// The interface definition, by hand: tags are `field << 3 | type`, type 2 is a length and bytes.
#[test]
fn the_bytes_of_a_request_are_those_of_the_interface_definition() {
    let task = HttpTask::post("http://h/")
        .unwrap()
        .header("A", "b")
        .body("xyz")
        .dispatch_deadline(Duration::from_secs(15))
        .oidc("a@b", Some("c"));
    let request = crate::Task::from(task).into_request(&queue(), "n".to_owned());

    let http_request = [
        &b"\x0a\x09http://h/"[..],       // url = 1
        b"\x10\x01",                     // http_method = 2: POST
        b"\x1a\x06\x0a\x01A\x12\x01b",   // headers = 3: key = 1, value = 2
        b"\x22\x03xyz",                  // body = 4
        b"\x32\x08\x0a\x03a@b\x12\x01c", // oidc_token = 6: account = 1, audience = 2
    ]
    .concat();
    let task = [
        &b"\x0a\x01n"[..], // name = 1
        b"\x1a",           // http_request = 3
        &[u8::try_from(http_request.len()).unwrap()],
        &http_request,
        b"\x32\x02\x08\x0f", // dispatch_deadline = 6: seconds = 1
    ]
    .concat();
    let parent = b"projects/p/locations/l/queues/q";
    let expected = [
        &b"\x0a"[..], // parent = 1
        &[u8::try_from(parent.len()).unwrap()],
        parent,
        b"\x12", // task = 2
        &[u8::try_from(task.len()).unwrap()],
        &task,
    ]
    .concat();
    let sorted = |bytes: &[u8]| CreateTaskRequest::decode(bytes).unwrap();
    assert_eq!(
        sorted(&request.bytes),
        sorted(&expected),
        "the same message"
    );
    assert_eq!(request.bytes.len(), expected.len());
    assert_eq!(request.task_len(), task.len());
}

/// A text or none, one time in two.
fn maybe(text: &'static str) -> impl Strategy<Value = Option<String>> {
    proptest::option::of(text)
}

proptest! {
    /// The generated types say what the bytes are.
    #[test]
    fn a_request_is_to_the_byte_what_the_generated_types_make_of_it(
        method in prop::sample::select(vec![HttpMethod::Post, HttpMethod::Put, HttpMethod::Options]),
        body in proptest::collection::vec(any::<u8>(), 0..40_000),
        headers in proptest::collection::vec(("[A-Z][a-z]{0,3}", "[ -~]{1,200}"), 0..4),
        name in "[a-z]{0,64}",
        path in "[a-z]{0,300}",
        (oidc, oauth) in (maybe("[a-z]{1,5}@[a-z]{1,5}"), maybe("[a-z]{1,5}@[a-z]{1,5}")),
        (deadline, since) in (proptest::option::of(15_000u64..1_800_000), proptest::option::of(any::<u32>())),
        retries in any::<bool>(),
    ) {
        let mut task = HttpTask::new(method, format!("http://h/{path}")).unwrap().body(body);
        for (name, value) in headers {
            task = task.header(name, value);
        }
        if let Some(account) = oidc {
            task = task.oidc(account, Some("audience"));
        }
        if let Some(account) = oauth {
            task = task.oauth(account, None);
        }
        if let Some(deadline) = deadline {
            task = task.dispatch_deadline(Duration::from_millis(deadline));
        }
        if let Some(since) = since {
            let ago = Duration::from_millis(since.into());
            task = task.schedule_at(SystemTime::UNIX_EPOCH + ago);
        }
        if retries {
            task = task.retries(TaskRetries::default().attempts(3.try_into().unwrap()));
        }
        let message = task.clone().into_message(name.clone());
        let expected = CreateTaskRequest {
            parent: queue().as_str().to_owned(),
            task: Some(message.clone()),
            response_view: 0,
        };
        let request = crate::Task::from(task).into_request(&queue(), name);
        prop_assert_eq!(&request.bytes[..], &expected.encode_to_vec()[..]);
        prop_assert_eq!(request.task_len(), request.task().len());
        prop_assert_eq!(Task::decode(request.task()).unwrap(), message);
    }
}
