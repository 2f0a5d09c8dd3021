//! TLS over real sockets, with a private CA.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use gcp_wire::proto::pubsub::StreamingPullRequest;
use gcp_wire::{
    AuthHeaders, Code, Connection, ConnectionOptions, Credentials, CredentialsError,
    CredentialsSource, Endpoint, EndpointError, Fault,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::environment;
use crate::server::{
    Handler, chain, handler, publish, published, read, refuse, serve, spawn, streamed,
};

/// A CA, and a server with a certificate of it for `localhost`.
pub(crate) struct TlsServer {
    pub(crate) ca: String,
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl TlsServer {
    pub(crate) async fn start(handler: Handler) -> Self {
        Self::start_with(&[b"h2"], move |stream| serve(stream, Arc::clone(&handler))).await
    }

    async fn start_with<F, A>(protocols: &[&[u8]], connected: F) -> Self
    where
        F: Fn(tokio_rustls::server::TlsStream<tokio::net::TcpStream>) -> A + Send + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &issuer)
            .unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            )
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        drop(spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                // A handshake fails where the client does not trust us, which some tests want.
                if let Ok(stream) = acceptor.accept(stream).await {
                    drop(spawn(connected(stream)));
                }
            }
        }));
        Self {
            ca,
            address,
            connections,
        }
    }

    /// The server without its CA. The name resolves to 127.0.0.1, and where it also does to ::1,
    /// nothing listens there and the next address is tried.
    pub(crate) fn untrusted(&self) -> Endpoint {
        Endpoint::tls(&format!("localhost:{}", self.address.port())).unwrap()
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.untrusted().ca_pem(self.ca.clone()).unwrap()
    }
}

pub(crate) fn connect(endpoint: Endpoint, credentials: Credentials) -> Connection {
    Connection::unary(endpoint, credentials, ConnectionOptions::default()).unwrap()
}

/// Gives the tokens `token-0`, `token-1`, …; a new one after each `invalidate`.
#[derive(Clone, Default)]
pub(crate) struct Counting {
    pub(crate) invalidated: Arc<AtomicUsize>,
    pub(crate) asked: Arc<AtomicUsize>,
}

impl CredentialsSource for Counting {
    fn headers(&self) -> BoxFuture<'_, Result<AuthHeaders, CredentialsError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let generation = self.invalidated.load(Ordering::SeqCst);
        Box::pin(async move { AuthHeaders::bearer(&format!("token-{generation}")) })
    }

    fn invalidate(&self) {
        self.invalidated.fetch_add(1, Ordering::SeqCst);
    }
}

/// Answers only those who come with `token`.
pub(crate) fn guarded(token: &'static str) -> Handler {
    handler(move |request| async move {
        let (headers, _) = read(request).await;
        let given = headers
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        if given == Some(&format!("Bearer {token}")) {
            published()
        } else {
            refuse(16, "who are you")
        }
    })
}

#[tokio::test]
async fn a_server_of_a_private_ca_is_trusted_by_pem_and_by_file() {
    let server = TlsServer::start(guarded("token-0")).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    // The file is read when connecting, so it may come after the endpoint.
    let by_file = server.untrusted().ca_file(&path).unwrap();
    std::fs::write(&path, &server.ca).unwrap();
    for endpoint in [server.endpoint(), by_file] {
        assert!(!endpoint.is_emulator());
        let source = Counting::default();
        let connection = connect(endpoint, Credentials::custom(source.clone()));
        publish(&connection).await.unwrap();
        publish(&connection).await.unwrap();
        // Asked per call, and never invalidated while accepted.
        assert_eq!(source.asked.load(Ordering::SeqCst), 2);
        assert_eq!(source.invalidated.load(Ordering::SeqCst), 0);
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_server_of_another_ca_is_a_fatal_error_and_gets_no_credentials() {
    let server = TlsServer::start(guarded("token-0")).await;
    let other = TlsServer::start(guarded("token-0")).await;
    let endpoint = server.untrusted().ca_pem(other.ca).unwrap();
    let error = publish(&connect(endpoint, Credentials::anonymous()))
        .await
        .unwrap_err();
    assert_eq!((error.fault(), error.never_sent()), (Fault::Fatal, true));
    let text = chain(&error);
    assert!(text.contains("certificate"), "{text}");
}

#[tokio::test]
async fn the_roots_of_the_system_are_trusted_where_no_ca_is_given() {
    // Where OpenSSL, and those who follow it, look for the system's roots.
    const VARIABLE: &str = "SSL_CERT_FILE";
    if environment::role().is_none() {
        let test = "tls::the_roots_of_the_system_are_trusted_where_no_ca_is_given";
        let folder = tempfile::tempdir().unwrap();
        let roots = folder.path().join("roots.pem");
        environment::run(test, "with roots", &[(VARIABLE, roots.as_os_str())]);
        return;
    }
    let roots = std::env::var_os(VARIABLE).unwrap();
    let server = TlsServer::start(guarded("token-0")).await;
    let call = async || {
        let source = Counting::default();
        let credentials = Credentials::custom(source);
        publish(&connect(server.untrusted(), credentials)).await
    };

    let error = call().await.unwrap_err();
    assert_eq!((error.fault(), error.never_sent()), (Fault::Fatal, true));
    assert!(
        error.to_string().contains("no root certificates"),
        "{error}"
    );

    let other = TlsServer::start(guarded("token-0")).await;
    std::fs::write(&roots, &other.ca).unwrap();
    let error = call().await.unwrap_err();
    assert_eq!((error.fault(), error.never_sent()), (Fault::Fatal, true));
    assert!(chain(&error).contains("certificate"), "{error}");

    std::fs::write(&roots, &server.ca).unwrap();
    call().await.unwrap();
}

#[tokio::test]
async fn an_unusable_ca_file_is_a_fatal_error_that_names_it() {
    let server = TlsServer::start(guarded("token-0")).await;
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.pem");
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "no certificate here").unwrap();
    for path in [missing, empty] {
        let endpoint = server.untrusted().ca_file(&path).unwrap();
        let error = publish(&connect(endpoint, Credentials::anonymous()))
            .await
            .unwrap_err();
        assert_eq!((error.fault(), error.never_sent()), (Fault::Fatal, true));
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
    }
    let error = server
        .untrusted()
        .ca_pem("no certificate here")
        .unwrap_err();
    assert_eq!(error, EndpointError::NoCertificate);
}

#[tokio::test]
async fn a_tls_server_without_http2_is_told_as_such() {
    let server = TlsServer::start_with(&[], |stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let error = publish(&connect(server.endpoint(), Credentials::anonymous()))
        .await
        .unwrap_err();
    assert!(
        error.never_sent() && error.to_string().contains("HTTP/2"),
        "{error}"
    );
}

#[tokio::test]
async fn a_listener_that_never_speaks_ends_with_the_connect_timeout() {
    // The system accepts the connection; nobody ever takes part in the handshake.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::tls(&listener.local_addr().unwrap().to_string()).unwrap();
    let server = TlsServer::start(guarded("token-0")).await;
    let endpoint = endpoint.ca_pem(server.ca).unwrap();
    let options = ConnectionOptions::default().connect_timeout(Duration::from_millis(200));
    let connection = Connection::unary(endpoint.clone(), Credentials::anonymous(), options);
    let error = publish(&connection.unwrap()).await.unwrap_err();
    assert_eq!(
        (error.fault(), error.never_sent()),
        (Fault::Transient, true)
    );
    assert!(error.to_string().contains("within 200ms"), "{error}");

    // Our own deadline runs while connecting, too.
    let connection = connect(endpoint, Credentials::anonymous());
    let request = gcp_wire::proto::pubsub::PublishRequest::default();
    let short = Duration::from_millis(200);
    let call = connection.call(&gcp_wire::method::PUBLISH, "t", request, short);
    let error = call.await.unwrap_err();
    assert!(error.is_timeout() && error.never_sent(), "{error}");
    drop(listener);
}

#[tokio::test]
async fn refused_credentials_are_renewed_once_and_the_request_sent_again() {
    let server = TlsServer::start(guarded("token-1")).await;
    let source = Counting::default();
    let connection = connect(server.endpoint(), Credentials::custom(source.clone()));
    publish(&connection).await.unwrap();
    assert_eq!(source.invalidated.load(Ordering::SeqCst), 1);
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn credentials_that_stay_refused_are_an_error_after_one_renewal() {
    let server = TlsServer::start(guarded("another")).await;
    let source = Counting::default();
    let connection = connect(server.endpoint(), Credentials::custom(source.clone()));
    let error = publish(&connection).await.unwrap_err();
    assert!(error.is_unauthenticated());
    assert_eq!(
        (error.fault(), error.code()),
        (Fault::Denied, Code::Unauthenticated)
    );
    assert_eq!(error.message(), "who are you");
    assert_eq!(source.invalidated.load(Ordering::SeqCst), 1);
    assert_eq!(source.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_source_that_panics_is_a_fatal_error_and_not_the_end_of_the_driver() {
    let server = TlsServer::start(guarded("token-0")).await;
    let connection = connect(
        server.endpoint(),
        Credentials::custom(Panicking(Mutex::new(None))),
    );
    let error = publish(&connection).await.unwrap_err();
    assert_eq!((error.fault(), error.method()), (Fault::Fatal, "Publish"));
}

/// Gives a token that no server here accepts, and panics when it is told so or asked for another;
/// without a moment for it, at once.
struct Panicking(Mutex<Option<Panics>>);

#[derive(Clone, Copy)]
enum Panics {
    WhenInvalidated,
    WhenAskedAgain,
}

impl CredentialsSource for Panicking {
    fn headers(&self) -> BoxFuture<'_, Result<AuthHeaders, CredentialsError>> {
        assert!(
            self.0.lock().unwrap().is_some(),
            "a bug in the host's credentials"
        );
        Box::pin(async { AuthHeaders::bearer("refused") })
    }

    fn invalidate(&self) {
        let when = self.0.lock().unwrap().take();
        assert!(
            matches!(when, Some(Panics::WhenAskedAgain)),
            "a bug in the host's credentials"
        );
    }
}

#[tokio::test]
async fn a_source_that_panics_ends_a_pull_stream_with_an_error_and_not_its_task() {
    let server = TlsServer::start(guarded_pulls("token-0")).await;
    let pulls = |when| {
        let credentials = Credentials::custom(Panicking(Mutex::new(when)));
        let options = ConnectionOptions::default();
        Connection::pull(server.endpoint(), credentials, 1, options).unwrap()
    };
    let error = pulls(None).open_pull(first()).await.unwrap_err();
    assert_eq!(
        (error.fault(), error.method()),
        (Fault::Fatal, "StreamingPull")
    );

    for (when, fault) in [
        (Panics::WhenInvalidated, Fault::Denied),
        (Panics::WhenAskedAgain, Fault::Fatal),
    ] {
        let mut stream = pulls(Some(when)).open_pull(first()).await.unwrap();
        assert_eq!(stream.next().await.unwrap_err().fault(), fault);
        assert!(stream.next().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn an_error_of_the_source_is_told_and_nothing_is_sent() {
    struct Failing(CredentialsError);
    impl CredentialsSource for Failing {
        fn headers(&self) -> BoxFuture<'_, Result<AuthHeaders, CredentialsError>> {
            Box::pin(async { Err(self.0.clone()) })
        }
        fn invalidate(&self) {}
    }
    let server = TlsServer::start(guarded("token-0")).await;
    for (reason, fault) in [
        (CredentialsError::Unavailable, Fault::Transient),
        (CredentialsError::Refused, Fault::Denied),
    ] {
        let connection = connect(
            server.endpoint(),
            Credentials::custom(Failing(reason.clone())),
        );
        let error = publish(&connection).await.unwrap_err();
        assert_eq!((error.fault(), error.never_sent()), (fault, true));
        assert_eq!(error.credentials_error(), Some(&reason));
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
}

fn first() -> StreamingPullRequest {
    StreamingPullRequest {
        subscription: "projects/demo/subscriptions/orders".into(),
        ..Default::default()
    }
}

/// Opens streams only for `token`, and sends one empty response on each.
fn guarded_pulls(token: &'static str) -> Handler {
    handler(move |request| async move {
        let headers = request.headers().clone();
        if headers["authorization"] != format!("Bearer {token}").as_str() {
            return refuse(16, "who are you");
        }
        use futures::StreamExt as _;
        let response = http_body::Frame::data(crate::server::framed(b""));
        streamed(futures::stream::iter([response]).chain(futures::stream::pending()))
    })
}

fn pulls(server: &TlsServer, source: &Counting, options: ConnectionOptions) -> Connection {
    let credentials = Credentials::custom(source.clone());
    Connection::pull(server.endpoint(), credentials, 1, options).unwrap()
}

#[tokio::test]
async fn a_pull_stream_with_refused_credentials_is_opened_once_more() {
    let server = TlsServer::start(guarded_pulls("token-1")).await;
    let source = Counting::default();
    let connection = pulls(&server, &source, ConnectionOptions::default());
    let mut stream = connection.open_pull(first()).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    stream.ping().unwrap();
    assert_eq!(source.invalidated.load(Ordering::SeqCst), 1);

    let server = TlsServer::start(guarded_pulls("another")).await;
    let source = Counting::default();
    let connection = pulls(&server, &source, ConnectionOptions::default());
    let mut stream = connection.open_pull(first()).await.unwrap();
    let error = stream.next().await.unwrap_err();
    assert_eq!(
        (error.code(), error.fault()),
        (Code::Unauthenticated, Fault::Denied)
    );
    assert_eq!(source.asked.load(Ordering::SeqCst), 2);
    assert!(stream.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_connection_that_fell_silent_is_noticed_by_its_pings_and_replaced() {
    // The server stops reading and writing once told, and never closes: a lost network path.
    let freeze = Arc::new(Notify::new());
    let frozen = Arc::clone(&freeze);
    let server = TlsServer::start_with(&[b"h2"], move |stream| {
        let frozen = Arc::clone(&frozen);
        async move {
            let serving = serve(stream, guarded_pulls("token-0"));
            tokio::pin!(serving);
            tokio::select! {
                () = &mut serving => {}
                () = frozen.notified() => std::future::pending().await,
            }
        }
    })
    .await;
    let options = ConnectionOptions::default()
        .keepalive(Some(Duration::from_millis(50)))
        .keepalive_timeout(Duration::from_millis(200));
    let connection = pulls(&server, &Counting::default(), options);
    let mut stream = connection.open_pull(first()).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    freeze.notify_one();
    let lost = tokio::time::timeout(Duration::from_secs(20), stream.next()).await;
    let error = lost
        .expect("noticed within the time of a ping")
        .unwrap_err();
    assert_eq!(
        (error.fault(), error.is_transport()),
        (Fault::Transient, true),
        "{error}"
    );
    let mut stream = connection.open_pull(first()).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}
