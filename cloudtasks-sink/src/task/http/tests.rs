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
fn a_url_without_scheme_or_host_is_refused_by_the_constructor() {
    let rule = |url: &str| match HttpTask::post(url) {
        Err(TaskError::Url { rule, .. }) => Some(rule),
        Err(other) => panic!("{other}"),
        Ok(_) => None,
    };
    for url in [
        "",
        "api.example.com",
        "/orders",
        "ftp://h/",
        "HTTP://h/",
        "https:/h",
    ] {
        assert_eq!(rule(url), Some(UrlRule::Scheme), "{url:?}");
    }
    for url in [
        "https://",
        "https:///path",
        "http://:80/",
        "http://a@b@c/",
        "http://[1::2/",
        "http://[nonsense]/",
        "http://[::1]x/",
        "http://a%2fb/",
        "http://h\u{e9}/",
    ] {
        assert_eq!(rule(url), Some(UrlRule::Host), "{url:?}");
    }
    for url in [
        "http://h:port/",
        "http://h:65536/",
        "http://h:+1/",
        "http://[::1]:x/",
    ] {
        assert_eq!(rule(url), Some(UrlRule::Port), "{url:?}");
    }
    for url in [
        "http://h/a b",
        "http://h/a\tb",
        "http://h/\u{7}",
        "http://h/\u{a0}",
    ] {
        assert_eq!(rule(url), Some(UrlRule::Whitespace), "{url:?}");
    }
    assert_eq!(rule("http://h/a#top"), Some(UrlRule::Fragment));
    assert_eq!(rule("http://allowed\\@evil/"), Some(UrlRule::Backslash));
    for url in [
        "http://h",
        "http://h:8080",
        "http://h?x=1",
        "https://u:p@h/",
        "http://[::1]:9/a",
        "https://h/%E2%9C%93?a=b&c",
        "http://127.0.0.1:9000/x",
        "http://h:/",
        "http://a_b.c-d/\\",
    ] {
        assert_eq!(rule(url), None, "{url:?}");
    }
}

#[test]
fn an_error_about_a_url_leaves_its_query_string_out() {
    let error = HttpTask::post("nonsense?token=secret").unwrap_err();
    assert!(error.to_string().contains("nonsense"), "{error}");
    assert!(
        !format!("{error} {error:?}").contains("secret"),
        "{error:?}"
    );
}

#[test]
fn a_segment_is_one_segment_whatever_it_holds() {
    let url = |segment: &str| {
        HttpTask::post("https://h/orders")
            .unwrap()
            .segment(segment)
            .url()
            .to_owned()
    };
    assert_eq!(url("17"), "https://h/orders/17");
    assert_eq!(url("a/b"), "https://h/orders/a%2Fb");
    assert_eq!(url("../admin"), "https://h/orders/..%2Fadmin");
    assert_eq!(url("a?b#c"), "https://h/orders/a%3Fb%23c");
    assert_eq!(url("%2e%2e"), "https://h/orders/%252e%252e");
    assert_eq!(url("\u{e9} \\"), "https://h/orders/%C3%A9%20%5C");
    assert_eq!(url("a-b_c.d~e"), "https://h/orders/a-b_c.d~e");
    let twice = HttpTask::post("https://h/")
        .unwrap()
        .segment("a")
        .segment("b");
    assert_eq!(twice.url(), "https://h/a/b");
}

#[test]
fn a_segment_that_would_change_the_path_makes_the_task_a_rejection() {
    for segment in ["", ".", ".."] {
        let task = post().segment(segment).segment("fine");
        match check(&task) {
            Err(TaskError::Segment { segment: named }) => assert_eq!(named, segment),
            other => panic!("{other:?}"),
        }
        assert_eq!(task.url(), "https://partner.example/orders/fine");
    }
}

#[test]
fn segments_and_query_pairs_keep_their_places_in_any_order() {
    let task = HttpTask::get("https://h/a?x=1")
        .unwrap()
        .query("k e", "v&v")
        .segment("b");
    assert_eq!(task.url(), "https://h/a/b?x=1&k%20e=v%26v");
    let task = HttpTask::get("https://h")
        .unwrap()
        .query("a", "")
        .segment("b")
        .query("c", "d");
    assert_eq!(task.url(), "https://h/b?a=&c=d");
}

#[test]
fn only_post_put_and_patch_carry_a_body() {
    let url = "https://h/";
    for task in [
        HttpTask::post(url),
        HttpTask::put(url),
        HttpTask::patch(url),
    ] {
        assert!(check(&task.unwrap().body("x")).is_ok());
    }
    for task in [
        HttpTask::get(url),
        HttpTask::head(url),
        HttpTask::delete(url),
        HttpTask::options(url),
    ] {
        let task = task.unwrap();
        assert!(check(&task.clone().body("")).is_ok());
        let error = check(&task.body("x")).unwrap_err();
        assert!(matches!(error, TaskError::BodyNotAllowed { .. }), "{error}");
        assert!(
            error.to_string().contains("only POST, PUT and PATCH"),
            "{error}"
        );
    }
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
fn headers_of_one_name_in_other_letter_case_are_one_header_and_the_last_wins() {
    let task = post()
        .header("X-Tenant", "a")
        .header("x-tenant", "b")
        .header("Other", "c");
    let expected: BTreeMap<String, String> = [("x-tenant", "b"), ("Other", "c")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    assert_eq!(request(task).headers, expected);
}

#[test]
fn there_is_exactly_one_content_type_and_the_users_wins_over_json() {
    let content_type = |task: HttpTask| -> Vec<(String, String)> {
        request(task)
            .headers
            .into_iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"))
            .collect()
    };
    let body = BTreeMap::from([("a", 1)]);
    let one = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let json = || post().json(&body).unwrap();
    assert_eq!(
        content_type(json()),
        one("Content-Type", "application/json")
    );
    assert_eq!(request(json()).body, r#"{"a":1}"#.as_bytes());
    for name in ["content-type", "Content-Type"] {
        let before = post().header(name, "text/plain").json(&body).unwrap();
        let after = json().header(name, "text/plain");
        assert_eq!(content_type(before), one(name, "text/plain"));
        assert_eq!(content_type(after), one(name, "text/plain"));
    }
    let merged = json()
        .header("content-type", "a/b")
        .header("Content-Type", "c/d");
    assert_eq!(content_type(merged), one("Content-Type", "c/d"));
    assert_eq!(content_type(post().body("raw")), vec![]);
    assert_eq!(content_type(json().body("raw after all")), vec![]);
}

#[test]
fn a_value_that_does_not_serialize_is_an_error_with_its_cause() {
    let keys_that_are_no_text = BTreeMap::from([(vec![1], 2)]);
    let error = post().json(&keys_that_are_no_text).unwrap_err();
    assert!(matches!(error, TaskError::Body { .. }));
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn headers_that_the_service_would_drop_or_change_make_the_task_a_rejection() {
    let rule = |name: &str, value: &str| match check(&post().header(name, value)) {
        Ok(()) => None,
        Err(TaskError::Header { rule, .. }) => Some(rule),
        Err(other) => panic!("{other}"),
    };
    for name in [
        "Host",
        "content-LENGTH",
        "User-Agent",
        "X-Google-Trace",
        "x-appengine-task",
        "Connection",
        "Transfer-Encoding",
        "X-Forwarded-For",
        "TE",
    ] {
        assert_eq!(rule(name, "x"), Some(HeaderRule::Reserved), "{name}");
    }
    for name in ["", "a b", "a:b", "a\r\nb", "\u{e9}", " a"] {
        assert_eq!(rule(name, "x"), Some(HeaderRule::Name), "{name:?}");
    }
    for value in ["a\nb", "a\rb", "a\0b", "\u{e9}", "a\u{7f}"] {
        assert_eq!(rule("X-A", value), Some(HeaderRule::Value), "{value:?}");
    }
    assert_eq!(rule("X-A", ""), Some(HeaderRule::Empty));
    assert_eq!(rule("X-A", &"v".repeat(8_186)), Some(HeaderRule::TooLong));
    assert_eq!(rule("X-A", &"v".repeat(8_185)), None);
    for name in [
        "Authorization",
        "Content-Type",
        "X-CloudTasks-Mine",
        "X-Forwarded-Proto",
        "X-Request-Id",
        "Hostess",
    ] {
        assert_eq!(rule(name, "a \t~"), None, "{name}");
    }
}

#[test]
fn an_error_about_a_header_leaves_its_value_out() {
    let error = check(&post().header("X-Key", "secret\n")).unwrap_err();
    assert!(error.to_string().contains("X-Key"));
    assert!(!format!("{error} {error:?}").contains("secret"));
    let debug = format!(
        "{:?}",
        post()
            .header("X-Key", "secret")
            .body("hidden")
            .query("q", "mine")
    );
    assert!(debug.contains("X-Key"), "{debug}");
    for text in ["secret", "hidden", "mine"] {
        assert!(!debug.contains(text), "{debug}");
    }
}

#[test]
fn an_authorization_header_beside_a_token_is_refused_and_alone_it_is_kept() {
    let account = "caller@demo.iam.gserviceaccount.com";
    let task = post()
        .oidc(account, None)
        .header("authorization", "Bearer x");
    assert!(matches!(
        check(&task),
        Err(TaskError::AuthorizationBesideToken)
    ));
    let task = post().header("Authorization", "Bearer x");
    assert!(check(&task).is_ok());
    assert_eq!(request(task).headers["Authorization"], "Bearer x");
}

#[test]
fn a_task_takes_one_token_of_a_service_account() {
    let account = "caller@demo.iam.gserviceaccount.com";
    let google = HttpTask::post("https://run.googleapis.com/v2").unwrap();
    let both = google.clone().oidc(account, None).oauth(account, None);
    assert!(matches!(check(&both), Err(TaskError::TwoTokens)));
    for account in ["", "caller", "@demo", "caller@", "a@b@c"] {
        let error = check(&post().oidc(account, None)).unwrap_err();
        assert!(
            matches!(error, TaskError::ServiceAccount { .. }),
            "{account}: {error}"
        );
    }

    let oidc = post().oidc(account, Some("https://aud.example"));
    assert!(check(&oidc).is_ok());
    match request(oidc).authorization_header {
        Some(AuthorizationHeader::OidcToken(token)) => {
            assert_eq!(token.service_account_email, account);
            assert_eq!(token.audience, "https://aud.example");
        }
        other => panic!("{other:?}"),
    }
    match request(post().oidc(account, None)).authorization_header {
        Some(AuthorizationHeader::OidcToken(token)) => assert_eq!(token.audience, ""),
        other => panic!("{other:?}"),
    }
    let oauth = google.oauth(account, Some("scope"));
    assert!(check(&oauth).is_ok());
    match request(oauth).authorization_header {
        Some(AuthorizationHeader::OauthToken(token)) => assert_eq!(token.scope, "scope"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_oauth_token_goes_to_googleapis_hosts_only() {
    let check_host = |url: &str| check(&HttpTask::post(url).unwrap().oauth("a@b", None));
    assert!(check_host("https://run.googleapis.com/v2").is_ok());
    assert!(check_host("https://RUN.googleapis.com:443/v2").is_ok());
    for url in [
        "https://googleapis.com/",
        "https://evil.com/.googleapis.com",
        "https://x.googleapis.com.evil.com/",
        "https://x.googleapis.com@evil.com/",
    ] {
        assert!(
            matches!(check_host(url), Err(TaskError::OauthHost { .. })),
            "{url}"
        );
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
fn only_hosts_on_the_list_are_called_whatever_the_url_looks_like() {
    let hosts = ["Partner.example", "[::1]", "127.0.0.1"].map(ToOwned::to_owned);
    let allowed = AllowedHosts::parse(hosts.to_vec()).unwrap();
    let with = |url: &str| HttpTask::post(url).unwrap().check(now(), Some(&allowed));
    for url in [
        "https://partner.example/",
        "https://PARTNER.example:8443/x",
        "http://[::1]:9/",
        "http://127.0.0.1:9000/x",
        "https://evil.example@partner.example/",
    ] {
        assert!(with(url).is_ok(), "{url}");
    }
    for url in [
        "https://evil.example/",
        "https://partner.example.evil.example/",
        "https://partner.example@evil.example/",
        "https://evil.example/partner.example",
        "https://evil.example?@partner.example",
        "https://sub.partner.example/",
        "https://partner.example./",
    ] {
        let error = with(url).unwrap_err();
        assert!(
            matches!(error, TaskError::HostNotAllowed { .. }),
            "{url}: {error}"
        );
    }
    for entry in ["", "https://h", "h:80", "h/x", "a b", "u@h"] {
        assert_eq!(
            AllowedHosts::parse(vec![entry.to_owned()]),
            Err(entry.to_owned())
        );
    }
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

#[test]
fn a_method_without_a_body_never_asks_the_serializer() {
    struct Panics;
    impl BodyFormat<str> for Panics {
        fn content_type(&self) -> ContentType {
            ContentType::Default("text/x")
        }

        fn encode(&self, _value: &str) -> Result<Bytes, BoxError> {
            panic!("nobody needs this body")
        }
    }
    for method in [
        HttpMethod::Get,
        HttpMethod::Head,
        HttpMethod::Delete,
        HttpMethod::Options,
    ] {
        let task = HttpTask::new(method, "http://h/").unwrap();
        let task = task.body_as(&Panics, "x").unwrap().json(&[1]).unwrap();
        assert!(check(&task).is_ok(), "{method}");
        let sent = request(task);
        assert!(sent.body.is_empty() && sent.headers.is_empty(), "{sent:?}");
    }
}

#[test]
fn a_format_says_what_its_bodies_are_and_raw_bytes_say_nothing() {
    let types =
        |task: HttpTask| -> Vec<(String, String)> { request(task).headers.into_iter().collect() };
    let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let csv = post().body_as(&Csv::default(), &["a", "b"]).unwrap();
    assert_eq!(types(csv.clone()), pair("Content-Type", "text/csv"));
    let other = csv.header("content-type", "text/csv; header=absent");
    assert_eq!(
        types(other),
        pair("content-type", "text/csv; header=absent")
    );
    let text = post().body_as(&Text::default(), "x").unwrap();
    assert_eq!(
        types(text.clone()),
        pair("Content-Type", "text/plain; charset=utf-8")
    );
    assert_eq!(types(text.body("raw after all")), vec![]);
}

#[test]
fn a_form_takes_no_other_content_type_than_its_own() {
    let own = "application/x-www-form-urlencoded";
    let form = || {
        post()
            .body_as(&Form, &BTreeMap::from([("a", "b")]))
            .unwrap()
    };
    let sent = request(form());
    assert_eq!(sent.body, "a=b".as_bytes());
    assert_eq!(sent.headers["Content-Type"], own);
    for same in [own, " Application/X-WWW-Form-URLEncoded "] {
        let task = form().header("content-TYPE", same);
        assert!(check(&task).is_ok(), "{same:?}");
        let headers = request(task).headers;
        assert_eq!(
            headers,
            BTreeMap::from([("Content-Type".to_owned(), own.to_owned())])
        );
    }
    for other in [
        "text/plain",
        "application/x-www-form-urlencoded; charset=utf-8",
    ] {
        let before = post().header("Content-Type", other);
        let before = before
            .body_as(&Form, &BTreeMap::from([("a", "b")]))
            .unwrap();
        for task in [before, form().header("content-type", other)] {
            match check(&task) {
                Err(TaskError::ContentType { given, .. }) => assert_eq!(given, other),
                verdict => panic!("{other}: {verdict:?}"),
            }
        }
    }
    let replaced = form()
        .header("Content-Type", "text/plain")
        .body("raw after all");
    assert!(check(&replaced).is_ok());
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
