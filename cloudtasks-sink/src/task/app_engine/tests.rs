use gcp_wire::QueueName;
use proptest::prelude::*;

use super::*;
use crate::Task;
use crate::task::{HeaderRule, RelativeUriRule};

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_000_000)
}

fn request(task: AppEngineTask) -> proto::tasks::AppEngineHttpRequest {
    match task.into_message(String::new()).message_type {
        Some(MessageType::AppEngineHttpRequest(request)) => request,
        other => panic!("not an App Engine task: {other:?}"),
    }
}

fn with_length(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

/// The interface definition, by hand: tags are `field << 3 | type`, type 2 is a length and bytes.
/// No emulator serves these tasks, so these bytes are the witness.
#[test]
fn the_bytes_of_an_app_engine_task_are_those_of_the_interface_definition() {
    let task = AppEngineTask::put("/orders?a=b")
        .service("worker")
        .version("v2")
        .instance("i3")
        .header("X-A", "1")
        .body("xyz")
        .dispatch_deadline(Duration::from_secs(86_400))
        .retries(
            TaskRetries::default()
                .attempts(5.try_into().unwrap())
                .within(Duration::from_secs(60))
                .backoff(Duration::from_secs(1), Duration::from_secs(9))
                .doublings(3),
        );
    assert!(task.check(now()).is_ok());
    let queue: QueueName = "projects/p/locations/l/queues/q".parse().unwrap();
    let sent = Task::from(task).into_request(&queue, "n".to_owned());

    let routing = b"\x0a\x06worker\x12\x02v2\x1a\x02i3"; // service = 1, version = 2, instance = 3
    let app_engine = [
        &b"\x08\x04"[..],                            // http_method = 1: PUT
        &with_length(0x12, routing),                 // app_engine_routing = 2
        b"\x1a\x0b/orders?a=b",                      // relative_uri = 3
        &with_length(0x22, b"\x0a\x03X-A\x12\x011"), // headers = 4: key = 1, value = 2
        b"\x2a\x03xyz",                              // body = 5
    ]
    .concat();
    let retries = [
        &b"\x08\x05"[..],    // max_attempts = 1
        b"\x12\x02\x08\x3c", // max_retry_duration = 2: seconds = 1
        b"\x1a\x02\x08\x01", // min_backoff = 3
        b"\x22\x02\x08\x09", // max_backoff = 4
        b"\x28\x03",         // max_doublings = 5
    ]
    .concat();
    let task = [
        &b"\x0a\x01n"[..],               // name = 1
        &with_length(0x12, &app_engine), // app_engine_http_request = 2
        b"\x32\x04\x08\x80\xa3\x05",     // dispatch_deadline = 6: seconds = 1: 86,400
        &with_length(0x62, &retries),    // retry_config = 12
    ]
    .concat();
    let decoded = |bytes: &[u8]| <proto::tasks::Task as prost::Message>::decode(bytes).unwrap();
    assert_eq!(decoded(&sent.task()), decoded(&task), "the same message");
    assert_eq!(sent.task_len(), task.len(), "and nothing besides");
}

#[test]
fn routing_that_is_not_given_is_left_to_the_service() {
    assert_eq!(request(AppEngineTask::post("/x")).app_engine_routing, None);
    let routing = request(AppEngineTask::post("/x").version("v2")).app_engine_routing;
    let routing = routing.unwrap();
    assert_eq!(
        (routing.service.as_str(), routing.version.as_str()),
        ("", "v2")
    );
    assert_eq!((routing.instance.as_str(), routing.host.as_str()), ("", ""));
}

#[test]
fn a_body_goes_with_post_and_put_only() {
    for method in [
        HttpMethod::Post,
        HttpMethod::Put,
        HttpMethod::Patch,
        HttpMethod::Get,
        HttpMethod::Head,
        HttpMethod::Delete,
        HttpMethod::Options,
    ] {
        let task = AppEngineTask::new(method, "/x");
        assert!(task.check(now()).is_ok(), "{method}");
        let takes = matches!(method, HttpMethod::Post | HttpMethod::Put);
        match task.body("x").check(now()) {
            Ok(()) => assert!(takes, "{method}"),
            Err(TaskError::BodyNotAllowed { allowed, .. }) => {
                assert!(!takes, "{method}");
                assert_eq!(allowed, "POST and PUT");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn headers_that_the_service_keeps_for_itself_are_refused_and_a_user_agent_is_not() {
    let with = |name: &str| AppEngineTask::post("/x").header(name, "v").check(now());
    for name in [
        "Host",
        "CONTENT-LENGTH",
        "X-Google-Trace",
        "x-appengine-QueueName",
    ] {
        match with(name) {
            Err(TaskError::Header { name: given, rule }) => {
                assert_eq!((given.as_str(), rule), (name, HeaderRule::Reserved));
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    for name in [
        "User-Agent",
        "Authorization",
        "X-Googly",
        "Via",
        "Content-Type",
    ] {
        assert!(with(name).is_ok(), "{name}");
    }
    assert!(matches!(
        with("Host "),
        Err(TaskError::Header {
            rule: HeaderRule::Name,
            ..
        })
    ));
}

#[test]
fn a_uri_that_leaves_the_application_is_refused_when_the_sink_takes_the_task() {
    let rule = |uri: &str| match AppEngineTask::post(uri).check(now()) {
        Err(TaskError::RelativeUri { rule, .. }) => rule,
        other => panic!("{other:?}"),
    };
    assert_eq!(rule("https://evil.example/"), RelativeUriRule::Slash);
    assert_eq!(rule("//evil.example/"), RelativeUriRule::Authority);
    let dots = AppEngineTask::post("/orders").segment("..");
    assert!(matches!(dots.check(now()), Err(TaskError::Segment { .. })));
    let root = AppEngineTask::get("").query("a b", "c&d");
    assert!(root.check(now()).is_ok());
    assert_eq!(request(root).relative_uri, "/?a%20b=c%26d");
}

#[test]
fn a_deadline_may_be_as_long_as_a_basic_or_manual_scaling_service_takes() {
    let with = |seconds| {
        AppEngineTask::post("/x")
            .dispatch_deadline(Duration::from_secs(seconds))
            .check(now())
    };
    assert!(with(15).is_ok());
    assert!(with(86_415).is_ok());
    for seconds in [14, 86_416] {
        let text = with(seconds).unwrap_err().to_string();
        assert!(text.contains("86415 s"), "{text}");
    }
}

#[test]
fn json_names_its_type_unless_a_header_does() {
    let json = || AppEngineTask::post("/x").json(&[1]).unwrap();
    assert_eq!(request(json()).headers["Content-Type"], "application/json");
    let named = request(json().header("content-type", "text/x")).headers;
    assert_eq!(named.len(), 1);
    assert_eq!(named["content-type"], "text/x");
}

#[test]
fn only_post_and_put_ask_a_serializer_for_a_body() {
    let with = |method| AppEngineTask::new(method, "/x").json(&[1]).unwrap();
    assert_eq!(request(with(HttpMethod::Put)).body, "[1]".as_bytes());
    let sent = request(with(HttpMethod::Patch));
    assert!(sent.body.is_empty() && sent.headers.is_empty(), "{sent:?}");
    let form = AppEngineTask::post("/x")
        .body_as(
            &crate::Form,
            &[("a", "b")]
                .into_iter()
                .collect::<std::collections::BTreeMap<_, _>>(),
        )
        .unwrap()
        .header("Content-Type", "text/plain");
    assert!(matches!(
        form.check(now()),
        Err(TaskError::ContentType { .. })
    ));
}

#[test]
fn the_debug_text_of_a_task_holds_no_body_no_header_value_and_no_query() {
    let task = AppEngineTask::post("/x?token=secret")
        .header("Authorization", "secret")
        .body("secret");
    let text = format!("{task:?}");
    assert!(!text.contains("secret"), "{text}");
    assert!(text.contains("/x"), "{text}");
}

proptest! {
    #[test]
    fn any_header_is_either_sent_unchanged_or_a_rejection(name in ".*", value in ".*") {
        let task = AppEngineTask::post("/x").header(name.clone(), value.clone());
        if task.check(now()).is_ok() {
            let sent = request(task).headers;
            prop_assert_eq!(sent.get(&name), Some(&value));
        }
    }
}
