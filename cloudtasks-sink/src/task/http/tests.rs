mod bodies;
mod headers;
mod urls;

use std::collections::BTreeMap;

use gcp_wire::proto::tasks::http_request::AuthorizationHeader;
use gcp_wire::proto::tasks::task::MessageType;
use gcp_wire::proto::tasks::{HttpRequest, Task};
use proptest::prelude::*;

use super::*;
use crate::task::{HeaderRule, UrlRule};
use crate::{ContentType, Csv, Form, Text};
use connector_core::BoxError;

const HOUR: Duration = Duration::from_secs(3600);

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_000_000)
}

fn post() -> HttpTask {
    HttpTask::post("https://partner.example/orders").unwrap()
}

fn check(task: &HttpTask) -> Result<(), TaskError> {
    task.check(now(), None)
}

fn http(task: Task) -> HttpRequest {
    match task.message_type {
        Some(MessageType::HttpRequest(request)) => request,
        other => panic!("not an HTTP task: {other:?}"),
    }
}

fn request(task: HttpTask) -> HttpRequest {
    http(task.into_message(String::new()))
}

#[test]
fn every_method_goes_out_under_its_number() {
    let number = |method| request(HttpTask::new(method, "https://h/").unwrap()).http_method;
    let numbers = [
        (HttpMethod::Post, 1),
        (HttpMethod::Get, 2),
        (HttpMethod::Head, 3),
        (HttpMethod::Put, 4),
        (HttpMethod::Delete, 5),
        (HttpMethod::Patch, 6),
        (HttpMethod::Options, 7),
    ];
    for (method, expected) in numbers {
        assert_eq!(number(method), expected, "{method}");
    }
}

#[test]
fn a_dispatch_deadline_lies_between_15_s_and_30_min() {
    let with = |deadline| check(&post().dispatch_deadline(deadline));
    let milli = Duration::from_millis(1);
    let (shortest, longest) = (Duration::from_secs(15), Duration::from_secs(1800));
    assert!(with(shortest).is_ok());
    assert!(with(longest).is_ok());
    for deadline in [
        Duration::ZERO,
        shortest - milli,
        longest + milli,
        Duration::MAX,
    ] {
        let error = with(deadline).unwrap_err();
        assert!(
            matches!(error, TaskError::DispatchDeadline { .. }),
            "{error}"
        );
    }
    let sent = post()
        .dispatch_deadline(Duration::from_millis(15_250))
        .into_message(String::new());
    let sent = sent.dispatch_deadline.unwrap();
    assert_eq!((sent.seconds, sent.nanos), (15, 250_000_000));
}

#[test]
fn a_task_is_scheduled_at_most_720_h_ahead_and_the_past_is_passed_on() {
    let year_1 = SystemTime::UNIX_EPOCH - Duration::from_secs(62_135_596_800);
    let year_9999 = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    let with = |at| check(&post().schedule_at(at));
    for at in [now() + 719 * HOUR, now() + 720 * HOUR, now() - HOUR, year_1] {
        assert!(with(at).is_ok(), "{at:?}");
    }
    for at in [now() + 721 * HOUR, year_9999] {
        let error = with(at).unwrap_err();
        assert!(
            matches!(error, TaskError::ScheduledTooFar { .. }),
            "{error}"
        );
    }
    let sent = |at| {
        post()
            .schedule_at(at)
            .into_message(String::new())
            .schedule_time
            .unwrap()
    };
    assert_eq!(sent(year_1).seconds, -62_135_596_800);
    let before_1970 = SystemTime::UNIX_EPOCH - Duration::from_millis(1_250);
    assert_eq!(
        (sent(before_1970).seconds, sent(before_1970).nanos),
        (-2, 750_000_000)
    );
    let precise = now() + Duration::from_micros(7);
    assert_eq!(
        (sent(precise).seconds, sent(precise).nanos),
        (1_796_000_000, 7_000)
    );
}

#[test]
fn a_task_is_what_was_asked_for_and_carries_the_name_it_is_given() {
    let task = post().header("X-A", "1").body("text");
    assert!(check(&task).is_ok());
    let message = task.into_message("name".to_owned());
    assert_eq!(message.name, "name");
    assert!(message.schedule_time.is_none());
    assert!(message.dispatch_deadline.is_none());
    assert!(message.retry_config.is_none());
    let request = http(message);
    assert_eq!(request.url, "https://partner.example/orders");
    assert_eq!(request.body, "text".as_bytes());
    assert!(request.authorization_header.is_none());
}

proptest! {
    #[test]
    fn no_text_makes_a_url_panic_and_what_parses_names_its_host(text in ".*") {
        for prefix in ["", "http://", "https://h", "https://h/", "http://[", "http://h:"] {
            if let Ok(task) = HttpTask::post(format!("{prefix}{text}")) {
                prop_assert!(!task.url.host().is_empty());
                prop_assert!(task.url().starts_with("http"));
            }
        }
    }

    #[test]
    fn a_segment_never_adds_a_slash_a_question_mark_or_a_fragment(text in ".+") {
        let task = post().segment(&text);
        if check(&task).is_ok() {
            let added = task.url().strip_prefix("https://partner.example/orders/").unwrap();
            prop_assert!(!added.contains(['/', '?', '#', '\\', ' ']));
            let decoded = percent_encoding::percent_decode_str(added).decode_utf8().unwrap();
            prop_assert_eq!(decoded.as_ref(), text.as_str());
        } else {
            prop_assert!(matches!(text.as_str(), "." | ".."));
        }
    }

    #[test]
    fn the_parts_of_a_query_pair_come_out_as_they_went_in(key in ".*", value in ".*") {
        let task = post().query(&key, &value);
        let (_, query) = task.url().split_once('?').unwrap();
        let (sent_key, sent_value) = query.split_once('=').unwrap();
        let decode = |text| -> String {
            percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned()
        };
        prop_assert_eq!(decode(sent_key), key);
        prop_assert_eq!(decode(sent_value), value);
    }

    #[test]
    fn any_header_is_either_sent_unchanged_or_a_rejection(name in ".*", value in ".*") {
        let task = post().header(name.clone(), value.clone());
        if check(&task).is_ok() {
            prop_assert!(name.is_ascii() && value.is_ascii());
            let sent = request(task).headers;
            prop_assert_eq!(sent.get(&name), Some(&value));
        }
    }
}
