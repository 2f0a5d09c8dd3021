//! Field numbers, held by bytes that were composed by hand from the interface definition.

mod queues;

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use prost_types::{Any, Duration, Timestamp};

use super::*;
use crate::proto::longrunning::{Operation, operation};
use crate::proto::rpc;

/// `tag << 3 | 2`, length, content.
fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    let key = u32::from(tag) << 3 | 2;
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(u64::from(key), &mut bytes);
    prost::encoding::encode_varint(content.len() as u64, &mut bytes);
    bytes.extend_from_slice(content);
    bytes
}

/// `tag << 3 | 0`, value.
fn number(tag: u8, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(u64::from(tag) << 3, &mut bytes);
    prost::encoding::encode_varint(value, &mut bytes);
    bytes
}

fn assert_bytes<M: Message + Default + PartialEq + std::fmt::Debug>(
    message: &M,
    expected: &[Vec<u8>],
) {
    let expected = expected.concat();
    assert_eq!(message.encode_to_vec(), expected);
    assert_eq!(&M::decode(&expected[..]).unwrap(), message);
}

fn entry(key: &[u8], value: &[u8]) -> Vec<u8> {
    [field(1, key), field(2, value)].concat()
}

#[test]
fn the_retry_settings_of_a_task_are_its_field_twelve() {
    let retry = RetryConfig {
        max_attempts: 3,
        max_retry_duration: Some(Duration {
            seconds: 4,
            nanos: 0,
        }),
        min_backoff: Some(Duration {
            seconds: 5,
            nanos: 0,
        }),
        max_backoff: Some(Duration {
            seconds: 6,
            nanos: 0,
        }),
        max_doublings: 7,
    };
    let bytes = [
        number(1, 3),
        field(2, &number(1, 4)),
        field(3, &number(1, 5)),
        field(4, &number(1, 6)),
        number(5, 7),
    ];
    assert_bytes(&retry, &bytes);
    let task = Task {
        retry_config: Some(retry),
        ..Task::default()
    };
    assert_bytes(&task, &[field(12, &bytes.concat())]);
    // The byte of the key itself: 12 << 3 | 2.
    assert_eq!(task.encode_to_vec()[0], 0x62);
}

#[test]
fn a_request_for_an_http_task_has_the_bytes_of_the_interface_definition() {
    let request = CreateTaskRequest {
        parent: "q".into(),
        task: Some(Task {
            name: "n".into(),
            message_type: Some(task::MessageType::HttpRequest(HttpRequest {
                url: "u".into(),
                http_method: HttpMethod::Put.into(),
                headers: BTreeMap::from([("a".into(), "1".into()), ("b".into(), "2".into())]),
                body: Bytes::from_static(b"x"),
                authorization_header: Some(http_request::AuthorizationHeader::OidcToken(
                    OidcToken {
                        service_account_email: "e".into(),
                        audience: "d".into(),
                    },
                )),
            })),
            schedule_time: Some(Timestamp {
                seconds: 9,
                nanos: 8,
            }),
            dispatch_deadline: Some(Duration {
                seconds: 15,
                nanos: 0,
            }),
            ..Task::default()
        }),
        response_view: task::View::Basic.into(),
    };
    let http = [
        field(1, b"u"),
        number(2, 4),
        field(3, &entry(b"a", b"1")),
        field(3, &entry(b"b", b"2")),
        field(4, b"x"),
        field(6, &[field(1, b"e"), field(2, b"d")].concat()),
    ];
    let task = [
        field(1, b"n"),
        field(3, &http.concat()),
        field(4, &[number(1, 9), number(2, 8)].concat()),
        field(6, &number(1, 15)),
    ];
    assert_bytes(
        &request,
        &[field(1, b"q"), field(2, &task.concat()), number(3, 1)],
    );
    assert_eq!(
        request.encode_to_vec(),
        *b"\x0a\x01q\x12\x2f\x0a\x01n\x1a\x20\x0a\x01u\x10\x04\x1a\x06\x0a\x01a\x12\x011\
           \x1a\x06\x0a\x01b\x12\x012\x22\x01x\x32\x06\x0a\x01e\x12\x01d\x22\x04\x08\x09\x10\x08\
           \x32\x02\x08\x0f\x18\x01",
        "golden bytes"
    );
}

#[test]
fn an_app_engine_task_has_the_bytes_of_the_interface_definition() {
    let routing = AppEngineRouting {
        service: "s".into(),
        version: "v".into(),
        instance: "i".into(),
        host: "h".into(),
    };
    let request = AppEngineHttpRequest {
        http_method: HttpMethod::Get.into(),
        app_engine_routing: Some(routing),
        relative_uri: "/r".into(),
        headers: BTreeMap::from([("k".into(), "v".into())]),
        body: Bytes::from_static(b"b"),
    };
    let bytes = [
        number(1, 2),
        field(
            2,
            &[
                field(1, b"s"),
                field(2, b"v"),
                field(3, b"i"),
                field(4, b"h"),
            ]
            .concat(),
        ),
        field(3, b"/r"),
        field(4, &entry(b"k", b"v")),
        field(5, b"b"),
    ];
    assert_bytes(&request, &bytes);
    let task = Task {
        message_type: Some(task::MessageType::AppEngineHttpRequest(request)),
        ..Task::default()
    };
    assert_bytes(&task, &[field(2, &bytes.concat())]);
}

#[test]
fn the_output_fields_of_a_task_are_read_from_their_numbers() {
    let status = rpc::Status {
        code: 5,
        message: "m".into(),
        details: vec![],
    };
    let attempt = Attempt {
        schedule_time: Some(Timestamp {
            seconds: 1,
            nanos: 0,
        }),
        dispatch_time: Some(Timestamp {
            seconds: 2,
            nanos: 0,
        }),
        response_time: Some(Timestamp {
            seconds: 3,
            nanos: 0,
        }),
        response_status: Some(status),
    };
    let bytes = [
        field(1, &number(1, 1)),
        field(2, &number(1, 2)),
        field(3, &number(1, 3)),
        field(4, &[number(1, 5), field(2, b"m")].concat()),
    ]
    .concat();
    let task = Task {
        create_time: Some(Timestamp {
            seconds: 1,
            nanos: 0,
        }),
        dispatch_count: 2,
        response_count: 3,
        first_attempt: Some(attempt.clone()),
        last_attempt: Some(attempt),
        view: task::View::Full.into(),
        ..Task::default()
    };
    assert_bytes(
        &task,
        &[
            field(5, &number(1, 1)),
            number(7, 2),
            number(8, 3),
            field(9, &bytes),
            field(10, &bytes),
            number(11, 2),
        ],
    );
}

#[test]
fn a_batch_and_its_operation_have_the_bytes_of_the_interface_definition() {
    let create = CreateTaskRequest {
        parent: "q".into(),
        ..CreateTaskRequest::default()
    };
    let batch = BatchCreateTasksRequest {
        parent: "q".into(),
        requests: vec![create.clone(), create],
        request_id: "r".into(),
    };
    let one = field(2, &field(1, b"q"));
    assert_bytes(&batch, &[field(1, b"q"), one.clone(), one, field(3, b"r")]);

    let status = rpc::Status {
        code: 6,
        message: String::new(),
        details: vec![],
    };
    let metadata = BatchCreateTasksMetadata {
        start_time: Some(Timestamp {
            seconds: 1,
            nanos: 0,
        }),
        end_time: Some(Timestamp {
            seconds: 2,
            nanos: 0,
        }),
        state: batch_create_tasks_metadata::State::PartiallySucceeded.into(),
        failed_requests: BTreeMap::from([(1, status.clone()), (7, status.clone())]),
    };
    let verdict = |index| [number(1, index), field(2, &number(1, 6))].concat();
    let bytes = [
        field(1, &number(1, 1)),
        field(2, &number(1, 2)),
        number(3, 5),
        field(4, &verdict(1)),
        field(4, &verdict(7)),
    ];
    assert_bytes(&metadata, &bytes);

    let any = Any {
        type_url: "t".into(),
        value: bytes.concat(),
    };
    let done = Operation {
        name: "o".into(),
        metadata: Some(any.clone()),
        done: true,
        result: Some(operation::Result::Response(any)),
    };
    let any = [field(1, b"t"), field(2, &bytes.concat())].concat();
    assert_bytes(
        &done,
        &[field(1, b"o"), field(2, &any), number(3, 1), field(5, &any)],
    );
    let failed = Operation {
        result: Some(operation::Result::Error(status)),
        ..done
    };
    assert_eq!(
        failed.encode_to_vec().last_chunk(),
        Some(&[4 << 3 | 2, 2, 8, 6])
    );
}

#[test]
fn the_details_of_an_error_have_their_numbers() {
    let info = rpc::ErrorInfo {
        reason: "r".into(),
        domain: "d".into(),
        metadata: BTreeMap::from([("k".into(), "v".into())]),
    };
    assert_bytes(
        &info,
        &[field(1, b"r"), field(2, b"d"), field(3, &entry(b"k", b"v"))],
    );
    let retry = rpc::RetryInfo {
        retry_delay: Some(Duration {
            seconds: 1,
            nanos: 0,
        }),
    };
    assert_bytes(&retry, &[field(1, &number(1, 1))]);
    let status = rpc::Status {
        code: 9,
        message: "m".into(),
        details: vec![Any {
            type_url: "t".into(),
            value: vec![1],
        }],
    };
    let any = [field(1, b"t"), field(2, &[1])].concat();
    assert_bytes(&status, &[number(1, 9), field(2, b"m"), field(3, &any)]);
}
