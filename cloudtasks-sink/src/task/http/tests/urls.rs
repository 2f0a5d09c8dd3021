//! The URL of a call.

use super::*;

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
