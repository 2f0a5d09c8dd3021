use gcp_wire::proto::tasks::{CreateTaskRequest, Task};
use proptest::prelude::*;

use super::*;
use crate::HttpTask;

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
        .dispatch_deadline(std::time::Duration::from_secs(15))
        .oidc("a@b", Some("c"));
    let request = Request::new(&queue(), &task.into_message("n".to_owned()));

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
    assert_eq!(request.task.len(), task.len());
}

proptest! {
    #[test]
    fn a_request_decodes_to_what_went_in_and_holds_the_task_as_it_is(
        body in proptest::collection::vec(any::<u8>(), 0..40_000),
        value in "[ -~]{1,200}",
        name in "[a-z]{0,64}",
    ) {
        let task = HttpTask::post("http://h/").unwrap().header("X-V", value).body(body);
        let message = task.into_message(name);
        let request = Request::new(&queue(), &message);
        let expected = CreateTaskRequest {
            parent: queue().as_str().to_owned(),
            task: Some(message.clone()),
            response_view: 0,
        };
        prop_assert_eq!(&request.bytes[..], &expected.encode_to_vec()[..]);
        prop_assert_eq!(Task::decode(request.task).unwrap(), message);
    }
}
