//! The headers of a call, and its tokens.

use super::*;

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
