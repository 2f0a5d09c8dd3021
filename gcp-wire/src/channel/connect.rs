use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use http::Uri;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tower::ServiceExt as _;

use super::meter::{Meter, Metered};
use super::options::{ConnectionOptions, Windows};
#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
use super::tls::Tls;
use crate::endpoint::{Endpoint, EndpointError, Reach};
use crate::grpc::RequestBody;
use crate::rpc_metrics;
use crate::status::{Fault, is_enhance_your_calm};

/// The error details of exactly-once acknowledgements come in a header: about 80 bytes per failed
/// id and a third for base64, so 1,000 ids need several hundred KB. The default of 16 KiB fails the
/// call, and beyond that ends every stream on the connection.
const HEADER_LIST: u32 = 4 << 20;

/// How often the time between pings doubles at most.
const CALM_DOUBLINGS: u32 = 6;

/// Why there is no connection.
#[derive(Clone, Debug, thiserror::Error)]
#[cfg_attr(
    not(any(feature = "tls-ring", feature = "tls-aws-lc")),
    expect(dead_code, reason = "only TLS fails like this")
)]
pub(crate) enum ConnectError {
    #[error("the server cannot be reached")]
    Dial {
        source: Arc<dyn Error + Send + Sync>,
    },
    #[error("no TLS session could be made with the server")]
    Tls { source: Arc<io::Error> },
    #[error("the server does not speak HTTP/2 over TLS; check that the endpoint is a gRPC server")]
    NotHttp2,
    #[error("the server did not begin HTTP/2")]
    Handshake { source: Arc<hyper::Error> },
    #[error("no connection could be made within {after:?}")]
    Timeout { after: Duration },
    #[error("the CA file {path} cannot be read")]
    CaUnreadable {
        path: String,
        source: Arc<io::Error>,
    },
    #[error("the CA file {path} is not usable")]
    CaUnusable { path: String, source: EndpointError },
    #[error("the system has no root certificates; install them, or give a CA to the endpoint")]
    NoSystemRoots,
    #[error("the runtime that made the connection is gone")]
    Gone,
}

impl ConnectError {
    #[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
    pub(super) fn tls(error: io::Error) -> Self {
        Self::Tls {
            source: Arc::new(error),
        }
    }

    /// What trying again can change: an outage passes, wrong certificates are wrong every time.
    pub(crate) fn fault(&self) -> Fault {
        match self {
            Self::Tls { source } if is_certificate_fault(source) => Fault::Fatal,
            Self::CaUnreadable { .. } | Self::CaUnusable { .. } | Self::NoSystemRoots => {
                Fault::Fatal
            }
            Self::Dial { .. }
            | Self::Tls { .. }
            | Self::NotHttp2
            | Self::Handshake { .. }
            | Self::Timeout { .. }
            | Self::Gone => Fault::Transient,
        }
    }
}

#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
fn is_certificate_fault(error: &io::Error) -> bool {
    use tokio_rustls::rustls::Error as TlsError;
    error
        .get_ref()
        .and_then(|error| error.downcast_ref())
        .is_some_and(|error| {
            matches!(
                error,
                TlsError::InvalidCertificate(_) | TlsError::NoCertificatesPresented
            )
        })
}

#[cfg(not(any(feature = "tls-ring", feature = "tls-aws-lc")))]
const fn is_certificate_fault(_: &io::Error) -> bool {
    false
}

/// Makes the connections of one endpoint.
pub(super) struct Connector {
    endpoint: Endpoint,
    windows: Windows,
    timeout: Duration,
    keepalive: Option<Duration>,
    keepalive_timeout: Duration,
    calm: AtomicU32,
    made: AtomicU64,
    #[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
    tls: Tls,
}

/// A connection that is up, or was a moment ago.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) sender: SendRequest<RequestBody>,
    pub(super) meter: Arc<Meter>,
    /// Tells this connection from the others of its connector.
    pub(super) number: u64,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Connector {
    /// What a server may send on a connection before it is read, in bytes.
    pub(super) const fn connection_window(&self) -> u32 {
        self.windows.connection
    }

    pub(super) fn new(endpoint: Endpoint, options: &ConnectionOptions, windows: Windows) -> Self {
        let keepalive = options.keepalive.filter(|_| !endpoint.is_emulator());
        Self {
            endpoint,
            windows,
            timeout: options.connect_timeout,
            keepalive,
            keepalive_timeout: options.keepalive_timeout,
            calm: AtomicU32::new(0),
            made: AtomicU64::new(0),
            #[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
            tls: Tls::default(),
        }
    }

    pub(super) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) async fn connect(self: Arc<Self>) -> Result<Link, ConnectError> {
        let made = tokio::time::timeout(self.timeout, self.make())
            .await
            .unwrap_or(Err(ConnectError::Timeout {
                after: self.timeout,
            }));
        rpc_metrics::connection(made.is_ok());
        match &made {
            Ok(link) => {
                tracing::debug!(endpoint = %self.endpoint, number = link.number, "connected");
            }
            Err(error) => {
                tracing::debug!(
                    endpoint = %self.endpoint,
                    error = error as &dyn Error,
                    "no connection could be made",
                );
            }
        }
        made
    }

    async fn make(self: &Arc<Self>) -> Result<Link, ConnectError> {
        let meter = Arc::new(Meter::default());
        let stream = self.stream(&meter).await?;
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            // Adaptive windows would replace the sizes that keep streams from blocking each other.
            .adaptive_window(false)
            .initial_stream_window_size(self.windows.stream)
            .initial_connection_window_size(self.windows.connection)
            .max_frame_size(self.windows.frame)
            .max_header_list_size(HEADER_LIST)
            .keep_alive_interval(self.ping_interval())
            .keep_alive_timeout(self.keepalive_timeout)
            .keep_alive_while_idle(true);
        let (sender, connection) =
            builder
                .handshake(TokioIo::new(stream))
                .await
                .map_err(|error| ConnectError::Handshake {
                    source: Arc::new(error),
                })?;
        let connector = Arc::clone(self);
        spawn(async move {
            if let Err(error) = connection.await {
                connector.handle_end(&error);
            }
        });
        Ok(Link {
            sender,
            meter,
            number: self.made.fetch_add(1, Ordering::Relaxed),
        })
    }

    async fn stream(&self, meter: &Arc<Meter>) -> Result<Box<dyn Stream>, ConnectError> {
        match self.endpoint.reach() {
            #[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
            Reach::Tls { authority, roots } => {
                let stream = Metered::new(dial(authority.to_string()).await?, Arc::clone(meter));
                Ok(Box::new(
                    self.tls.session(stream, authority.host(), roots).await?,
                ))
            }
            #[cfg(not(any(feature = "tls-ring", feature = "tls-aws-lc")))]
            // Unreachable: such a connection was refused when it was made.
            Reach::Tls { .. } => Err(ConnectError::NoSystemRoots),
            Reach::Plain { authority } => {
                let stream = dial(authority.to_string()).await?;
                Ok(Box::new(Metered::new(stream, Arc::clone(meter))))
            }
            Reach::Memory(dial) => {
                let stream = dial().map_err(|error| ConnectError::Dial {
                    source: Arc::new(error),
                })?;
                Ok(Box::new(Metered::new(stream, Arc::clone(meter))))
            }
        }
    }

    fn ping_interval(&self) -> Option<Duration> {
        let doublings = self.calm.load(Ordering::Relaxed).min(CALM_DOUBLINGS);
        self.keepalive
            .map(|interval| interval.saturating_mul(1 << doublings))
    }

    fn handle_end(&self, error: &hyper::Error) {
        if is_enhance_your_calm(error) {
            self.calm.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                endpoint = %self.endpoint,
                interval = ?self.ping_interval(),
                "the server finds our pings too many; the next connection pings half as often",
            );
        } else {
            tracing::debug!(
                endpoint = %self.endpoint,
                error = error as &dyn Error,
                "a connection ended",
            );
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// Looks the host up and connects, to IPv6 and IPv4 addresses with a head start for the first kind
/// (RFC 8305), so that one dead address does not use up the whole time.
async fn dial(authority: String) -> Result<tokio::net::TcpStream, ConnectError> {
    let failed = |source: Arc<dyn Error + Send + Sync>| ConnectError::Dial { source };
    let uri = Uri::builder()
        .scheme("http")
        .authority(authority)
        .path_and_query("/")
        .build()
        .map_err(|error| failed(Arc::new(error)))?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let stream = connector
        .oneshot(uri)
        .await
        .map_err(|error| failed(Arc::new(error)))?;
    Ok(stream.into_inner())
}

/// Runs a task that ends by itself: the making or the life of a connection.
#[expect(
    clippy::disallowed_methods,
    reason = "connections outlive the call that needed them first"
)]
pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}

#[cfg(test)]
mod tests;
