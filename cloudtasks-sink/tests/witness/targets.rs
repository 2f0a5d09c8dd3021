//! What of a task's target is kept, changed or refused: its headers and its tokens.

use cloudtasks_sink::Code;
use gcp_emulator::cloudtasks::proto::http_request::AuthorizationHeader;
use gcp_emulator::cloudtasks::proto::{OAuthToken, OidcToken, Task};

use crate::exchange::{Server, Way, all, http, request_of, stored};

fn oidc(email: &str, audience: &str) -> Task {
    let token = OidcToken {
        service_account_email: email.to_owned(),
        audience: audience.to_owned(),
    };
    http(|request| request.authorization_header = Some(AuthorizationHeader::OidcToken(token)))
}

fn oauth(url: &str, email: &str) -> Task {
    let token = OAuthToken {
        service_account_email: email.to_owned(),
        scope: String::new(),
    };
    http(|request| {
        url.clone_into(&mut request.url);
        request.authorization_header = Some(AuthorizationHeader::OauthToken(token));
    })
}

#[tokio::test]
async fn headers_are_kept_changed_or_dropped_without_a_word() {
    let given = [
        ("User-Agent", "mine"),
        ("X-Split", "a\r\nb"),
        ("X-Nul", "a\0b"),
        ("Host", "h"),
        ("Content-Length", "3"),
        ("X-Google-Y", "y"),
        ("X-AppEngine-Y", "y"),
        ("Authorization", "Bearer x"),
        ("Content-Type", "text/plain"),
        ("X-CloudTasks-Y", "kept"),
        ("X-Forwarded-Proto", "https"),
    ];
    let task = http(|request| {
        request.headers = given
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        // 8,189 bytes of name and value are too many, 8,188 are not.
        request.headers.insert("X-Long".into(), "v".repeat(8_183));
        request.headers.insert("X-Just".into(), "v".repeat(8_182));
    });
    stored(task, |task| {
        let mut kept: Vec<(String, &str)> = request_of(task)
            .headers
            .iter()
            .filter(|(name, _)| *name != "X-Just")
            .map(|(name, value)| (name.to_lowercase(), value.as_str()))
            .collect();
        kept.sort_unstable();
        let expected = [
            ("authorization", "Bearer x"),
            ("content-type", "text/plain"),
            ("user-agent", "Google-Cloud-Tasks"),
            ("x-cloudtasks-y", "kept"),
            ("x-forwarded-proto", "https"),
            ("x-nul", "a"),
            ("x-split", "a__b"),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        assert_eq!(kept, expected);
        assert!(request_of(task).headers.contains_key("X-Just"));
    })
    .await;
}

#[tokio::test]
async fn a_token_needs_an_account_and_an_access_token_a_host_of_google() {
    let account = "a@demo.iam.gserviceaccount.com";
    let refused = vec![
        ("identity of nobody", oidc("", "")),
        ("identity of no address", oidc("nobody", "")),
        (
            "access of nobody",
            oauth("https://pubsub.googleapis.com/", ""),
        ),
        ("another host", oauth("https://example.com/", account)),
    ];
    all(Code::InvalidArgument, refused).await;
    let taken = vec![
        ("identity", oidc(account, "")),
        ("audience without scheme", oidc(account, "no-scheme")),
        ("access", oauth("https://pubsub.googleapis.com/", account)),
    ];
    all(Code::Ok, taken).await;
}

#[tokio::test]
async fn an_identity_token_is_for_the_whole_url_unless_it_says_for_whom() {
    // The witness fills the audience in when it dispatches, which the tests of tokens see.
    let [_, ours] = Server::both().await;
    let mut task = oidc("a@demo.iam.gserviceaccount.com", "");
    if let Some(gcp_emulator::cloudtasks::proto::task::MessageType::HttpRequest(request)) =
        &mut task.message_type
    {
        request.url = "http://127.0.0.1:9/x?y=1".to_owned();
    }
    let created = ours.create(Way::Alone, task).await.unwrap();
    match &request_of(&created).authorization_header {
        Some(AuthorizationHeader::OidcToken(token)) => {
            assert_eq!(token.audience, "http://127.0.0.1:9/x?y=1");
        }
        other => panic!("{other:?}"),
    }
}
