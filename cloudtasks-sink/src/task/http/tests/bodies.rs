//! The body of a call, and its Content-Type.

use super::*;

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
