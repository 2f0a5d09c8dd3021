//! Google's credentials against a token endpoint of our own, and key files.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use gcp_wire::{Credentials, CredentialsError, Fault, RpcError, Service};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::environment;
use crate::server::{Handler, chain, handler, publish, published, read, refuse, spawn};
use crate::tls::{TlsServer, connect};

/// Issues the tokens `issued-1`, `issued-2`, …, to users and as a metadata server.
struct TokenEndpoint {
    url: String,
    issued: watch::Receiver<usize>,
    paths: Arc<Mutex<Vec<String>>>,
}

impl TokenEndpoint {
    /// Tokens live `seconds`. The first `silent` requests are not answered at all.
    async fn start(seconds: u64, status: StatusCode, silent: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (count, issued) = watch::channel(0);
        let paths = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&paths);
        let count = Arc::new(count);
        let answer = move |request: Request<Incoming>| {
            log.lock().unwrap().push(request.uri().path().to_owned());
            let count = Arc::clone(&count);
            async move {
                count.send_modify(|count| *count += 1);
                let number = *count.borrow();
                if number <= silent {
                    std::future::pending::<()>().await;
                }
                let body = json!({
                    "access_token": format!("issued-{number}"),
                    "expires_in": seconds,
                    "token_type": "Bearer",
                    "error_description": "s3cret-of-the-endpoint",
                });
                let response = Response::builder()
                    .status(status)
                    .header("content-type", "application/json")
                    .body(Full::new(Bytes::from(body.to_string())));
                Ok::<_, Infallible>(response.unwrap())
            }
        };
        drop(spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer.clone()));
                drop(spawn(async move {
                    // The error is that of a client that went away.
                    connection.await.ok();
                }));
            }
        }));
        Self { url, issued, paths }
    }

    fn issued(&self) -> usize {
        *self.issued.borrow()
    }
}

/// Accepts the requests for which `accept` says so, and keeps the bearer tokens.
fn checking(accept: impl Fn(&str) -> bool + Send + Sync + 'static) -> (Handler, Tokens) {
    let tokens = Tokens::default();
    let log = Arc::clone(&tokens);
    let accept = Arc::new(accept);
    let handler = handler(move |request| {
        let (log, accept) = (Arc::clone(&log), Arc::clone(&accept));
        async move {
            let (headers, _) = read(request).await;
            let token = headers["authorization"].to_str().unwrap().to_owned();
            let token = token.strip_prefix("Bearer ").unwrap().to_owned();
            let accepted = accept(&token);
            log.lock().unwrap().push(token);
            if accepted {
                published()
            } else {
                refuse(16, "expired")
            }
        }
    });
    (handler, tokens)
}

type Tokens = Arc<Mutex<Vec<String>>>;

fn taken(tokens: &Tokens) -> Vec<String> {
    std::mem::take(&mut tokens.lock().unwrap())
}

fn write(folder: &Path, name: &str, contents: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, contents).unwrap();
    path
}

fn user_file(folder: &Path) -> PathBuf {
    let user = json!({
        "type": "authorized_user",
        "client_id": "client",
        "client_secret": "s3cret-of-the-client",
        "refresh_token": "s3cret-to-refresh",
    });
    write(folder, "user.json", &user.to_string())
}

const PRIVATE_KEY: &str = include_str!("../data/rsa-2048-for-tests.pk8.pem");
const PUBLIC_KEY: &[u8] = include_bytes!("../data/rsa-2048-for-tests.public.der");
const EMAIL: &str = "loader@demo.iam.gserviceaccount.com";

fn key_file(folder: &Path, private_key: &str) -> PathBuf {
    let key = json!({
        "type": "service_account",
        "project_id": "demo",
        "private_key_id": "key-7",
        "private_key": private_key,
        "client_email": EMAIL,
        "client_id": "1",
        "token_uri": "https://oauth2.googleapis.com/token",
    });
    write(folder, "key.json", &key.to_string())
}

#[tokio::test]
async fn user_credentials_are_fetched_cached_and_made_afresh_when_refused() {
    let endpoint = TokenEndpoint::start(3_600, StatusCode::OK, 0).await;
    let folder = tempfile::tempdir().unwrap();
    let (handler, tokens) = checking(|token| token != "issued-1");
    let server = TlsServer::start(handler).await;
    let credentials = Credentials::authorized_user_file_at(user_file(folder.path()), &endpoint.url);
    assert_eq!(
        endpoint.issued(),
        0,
        "nothing is fetched before it is needed"
    );
    let connection = connect(server.endpoint(), credentials);
    for _ in 0..3 {
        publish(&connection).await.unwrap();
    }
    assert_eq!(
        taken(&tokens),
        ["issued-1", "issued-2", "issued-2", "issued-2"]
    );
    assert_eq!(endpoint.issued(), 2);
}

#[tokio::test]
async fn metadata_credentials_are_fetched_from_the_given_server() {
    let endpoint = TokenEndpoint::start(3_600, StatusCode::OK, 0).await;
    let (handler, tokens) = checking(|_| true);
    let server = TlsServer::start(handler).await;
    let credentials = Credentials::metadata_server_at(&endpoint.url);
    publish(&connect(server.endpoint(), credentials))
        .await
        .unwrap();
    assert_eq!(taken(&tokens), ["issued-1"]);
    let paths = endpoint.paths.lock().unwrap();
    assert_eq!(
        paths[..],
        ["/computeMetadata/v1/instance/service-accounts/default/token"]
    );
}

#[tokio::test]
async fn short_lived_tokens_are_replaced_before_they_expire() {
    let mut users = TokenEndpoint::start(25, StatusCode::OK, 0).await;
    let mut metadata = TokenEndpoint::start(25, StatusCode::OK, 0).await;
    let folder = tempfile::tempdir().unwrap();
    let (handler, tokens) = checking(|_| true);
    let server = TlsServer::start(handler).await;
    let user = Credentials::authorized_user_file_at(user_file(folder.path()), &users.url);
    let user = connect(server.endpoint(), user);
    let machine = Credentials::metadata_server_at(&metadata.url);
    let machine = connect(server.endpoint(), machine);
    publish(&user).await.unwrap();
    publish(&machine).await.unwrap();
    assert_eq!(taken(&tokens), ["issued-1", "issued-1"]);
    // The second token is fetched some ten seconds later, well before the first one is dead.
    for issued in [&mut users.issued, &mut metadata.issued] {
        let second = issued.wait_for(|&count| count == 2);
        tokio::time::timeout(Duration::from_secs(24), second)
            .await
            .unwrap()
            .unwrap();
    }
    for connection in [&user, &machine] {
        let renewed = async {
            loop {
                publish(connection).await.unwrap();
                if taken(&tokens) == ["issued-2"] {
                    break;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), renewed)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_service_that_refuses_every_token_does_not_flood_the_token_endpoint() {
    let endpoint = TokenEndpoint::start(3_600, StatusCode::OK, 0).await;
    let (handler, tokens) = checking(|_| false);
    let server = TlsServer::start(handler).await;
    let credentials = Credentials::metadata_server_at(&endpoint.url);
    let connection = connect(server.endpoint(), credentials);
    for _ in 0..10 {
        let error = publish(&connection).await.unwrap_err();
        assert!(error.is_unauthenticated());
    }
    assert_eq!(taken(&tokens).len(), 20, "each call is repeated once");
    assert_eq!(endpoint.issued(), 2, "rebuilt once within ten seconds");
}

#[tokio::test]
async fn a_refusing_token_endpoint_is_told_without_its_answer() {
    let endpoint = TokenEndpoint::start(3_600, StatusCode::UNAUTHORIZED, 0).await;
    let folder = tempfile::tempdir().unwrap();
    let (handler, tokens) = checking(|_| true);
    let server = TlsServer::start(handler).await;
    let path = user_file(folder.path());
    let connection = connect(
        server.endpoint(),
        Credentials::authorized_user_file_at(&path, &endpoint.url),
    );
    let error = publish(&connection).await.unwrap_err();
    assert_eq!(error.credentials_error(), Some(&CredentialsError::Refused));
    assert_eq!((error.fault(), error.never_sent()), (Fault::Denied, true));
    for secret in ["s3cret", "issued", path.to_str().unwrap(), &endpoint.url] {
        assert_absent(secret, &error);
    }
    assert!(taken(&tokens).is_empty());
}

#[test]
fn credentials_outlive_the_runtime_that_made_them() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    };
    let servers = runtime();
    // The first request for a token gets no answer, so the runtime ends while waiting for it.
    let mut endpoint = servers.block_on(TokenEndpoint::start(3_600, StatusCode::OK, 1));
    let (handler, tokens) = checking(|_| true);
    let server = servers.block_on(TlsServer::start(handler));
    let credentials = Credentials::metadata_server_at(&endpoint.url);
    let connection = connect(server.endpoint(), credentials);

    let first = runtime();
    let issued = &mut endpoint.issued;
    first.block_on(async {
        let waiting = publish(&connection);
        tokio::pin!(waiting);
        tokio::select! {
            outcome = &mut waiting => panic!("{outcome:?}"),
            seen = issued.wait_for(|&count| count == 1) => drop(seen.unwrap()),
        }
    });
    drop(first);
    runtime().block_on(async { publish(&connection).await.unwrap() });
    assert_eq!(taken(&tokens), ["issued-2"]);
}

fn part(jwt: &str, index: usize) -> Vec<u8> {
    BASE64_URL_SAFE_NO_PAD
        .decode(jwt.split('.').nth(index).unwrap())
        .unwrap()
}

/// The claims of a token that the test key signed.
fn verified(jwt: &str) -> (Value, Value) {
    let signed = jwt.rsplit_once('.').unwrap().0;
    ring::signature::UnparsedPublicKey::new(
        &ring::signature::RSA_PKCS1_2048_8192_SHA256,
        PUBLIC_KEY,
    )
    .verify(signed.as_bytes(), &part(jwt, 2))
    .unwrap();
    let json = |index| serde_json::from_slice(&part(jwt, index)).unwrap();
    (json(0), json(1))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a token's times are those of the wall clock"
)]
fn wall_clock() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

fn assert_claims(jwt: &str) -> Value {
    let (header, claims) = verified(jwt);
    assert_eq!(header["kid"], "key-7");
    assert_eq!(header["alg"], "RS256");
    assert_eq!(
        (&claims["iss"], &claims["sub"]),
        (&json!(EMAIL), &json!(EMAIL))
    );
    let (issued, expires) = (
        claims["iat"].as_i64().unwrap(),
        claims["exp"].as_i64().unwrap(),
    );
    let now = wall_clock();
    assert!((now - 60..=now).contains(&issued), "{issued} at {now}");
    // An hour, and some seconds for clocks that differ.
    assert!(
        (now + 3_500..now + 3_700).contains(&expires),
        "{expires} at {now}"
    );
    claims
}

#[tokio::test]
async fn a_key_file_signs_tokens_for_the_platform_or_for_one_service() {
    let folder = tempfile::tempdir().unwrap();
    let path = key_file(folder.path(), PRIVATE_KEY);
    let (handler, tokens) = checking(|_| true);
    let server = TlsServer::start(handler).await;
    let scoped = Credentials::service_account_key_file(&path);
    publish(&connect(server.endpoint(), scoped)).await.unwrap();
    let claims = assert_claims(&taken(&tokens)[0]);
    assert_eq!(
        claims["scope"],
        "https://www.googleapis.com/auth/cloud-platform"
    );
    assert_eq!(claims["aud"], Value::Null);
    for (service, audience) in [
        (Service::Pubsub, "https://pubsub.googleapis.com/"),
        (Service::CloudTasks, "https://cloudtasks.googleapis.com/"),
    ] {
        let bound = Credentials::service_account_key_file_for(&path, service);
        publish(&connect(server.endpoint(), bound)).await.unwrap();
        let claims = assert_claims(&taken(&tokens)[0]);
        assert_eq!(claims["aud"], audience);
        assert_eq!(claims.get("scope"), None);
    }
}

fn assert_absent(secret: &str, error: &(impl std::error::Error + 'static)) {
    let texts = [chain(error), format!("{error:?}"), format!("{error:#?}")];
    for text in texts {
        assert!(!text.contains(secret), "{secret:?} is in {text}");
    }
}

async fn failure(credentials: Credentials) -> RpcError {
    let (handler, tokens) = checking(|_| true);
    let server = TlsServer::start(handler).await;
    let error = publish(&connect(server.endpoint(), credentials))
        .await
        .unwrap_err();
    assert!(taken(&tokens).is_empty());
    assert!(error.never_sent());
    error
}

#[tokio::test]
async fn a_wrong_key_file_is_told_without_its_path_or_contents() {
    let folder = tempfile::tempdir().unwrap();
    let user = user_file(folder.path());
    let cut: String = PRIVATE_KEY.chars().take(800).collect();
    let cases = [
        (folder.path().join("missing.json"), "cannot be read"),
        (folder.path().to_owned(), "cannot be read"),
        (
            write(folder.path(), "text.json", "s3cret, and no JSON"),
            "not valid JSON",
        ),
        (
            write(folder.path(), "list.json", "[\"s3cret\"]"),
            "not of type service_account",
        ),
        (user, "not of type service_account"),
        (
            write(
                folder.path(),
                "few.json",
                r#"{"type":"service_account","x":"s3cret"}"#,
            ),
            "not valid JSON of a credential",
        ),
        (key_file(folder.path(), &cut), "cannot be used"),
    ];
    let key_line = PRIVATE_KEY.lines().nth(3).unwrap();
    for (path, reason) in cases {
        let error = failure(Credentials::service_account_key_file(&path)).await;
        assert_eq!(error.fault(), Fault::Denied, "{error}");
        assert!(error.to_string().contains(reason), "{path:?}: {error}");
        for secret in ["s3cret", path.to_str().unwrap(), EMAIL, key_line] {
            assert_absent(secret, &error);
        }
    }
}

#[tokio::test]
async fn a_key_file_that_is_repaired_is_used_by_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.json");
    let (handler, tokens) = checking(|_| true);
    let server = TlsServer::start(handler).await;
    let connection = connect(
        server.endpoint(),
        Credentials::service_account_key_file(&path),
    );
    publish(&connection).await.unwrap_err();
    key_file(folder.path(), PRIVATE_KEY);
    publish(&connection).await.unwrap();
    assert_claims(&taken(&tokens)[0]);
}

#[tokio::test]
async fn application_default_credentials_work_out_of_the_box() {
    const VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
    let Some(role) = environment::role() else {
        let test = "credentials::application_default_credentials_work_out_of_the_box";
        let folder = tempfile::tempdir().unwrap();
        let good = key_file(folder.path(), PRIVATE_KEY);
        environment::run(test, "accepted", &[(VARIABLE, good.as_os_str())]);
        let missing = folder.path().join("missing");
        environment::run(test, "no default", &[(VARIABLE, missing.as_os_str())]);
        return;
    };
    let (handler, tokens) = checking(|_| true);
    let server = TlsServer::start(handler).await;
    let connection = connect(server.endpoint(), Credentials::application_default());
    let outcome = publish(&connection).await;
    if role == "accepted" {
        outcome.unwrap();
        assert_claims(&taken(&tokens)[0]);
    } else {
        let error = outcome.unwrap_err();
        assert_eq!(
            error.credentials_error(),
            Some(&CredentialsError::NoDefault)
        );
        assert_absent(&std::env::var(VARIABLE).unwrap(), &error);
    }
}

#[tokio::test]
async fn anonymous_credentials_send_no_header() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let server = TlsServer::start(handler(move |request| {
        let count = Arc::clone(&count);
        async move {
            let (headers, _) = read(request).await;
            count.fetch_add(
                usize::from(headers.contains_key("authorization")),
                Ordering::SeqCst,
            );
            published()
        }
    }))
    .await;
    publish(&connect(server.endpoint(), Credentials::anonymous()))
        .await
        .unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 0);
}
