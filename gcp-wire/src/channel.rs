//! Connections: made when first needed, kept alive, replaced when dead, never shared between pull
//! streams and unary calls.

mod call;
mod connect;
mod meter;
mod options;
mod pull;
mod slot;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::uri::{Authority, Scheme};
use prost::Message;

pub use self::options::{ConnectionOptions, PULL_WINDOW, WireError};
pub use self::pull::{PullSendError, PullStream};
pub use crate::grpc::EncodedBody;

pub(crate) use self::connect::ConnectError;

use self::connect::Connector;
use self::options::Windows;
use self::slot::Slot;
use crate::credentials::Credentials;
use crate::endpoint::{Endpoint, Reach};
use crate::headers::Head;
use crate::method::{FromAnswer, Method};
use crate::proto::pubsub::StreamingPullRequest;
use crate::status::{Cause, Refusal, RpcError};

/// Requests at one time on one HTTP/2 connection: Google's front ends allow 100, and what goes
/// beyond would wait inside the transport, without a bound and without a word.
const REQUESTS_PER_CHANNEL: usize = 100;

/// A lazily connected, self-healing link to one service.
///
/// Cheap to clone. Making one does no I/O and needs no runtime; the first call connects. A channel
/// is replaced when it closes, and after two time-outs of our own in a row without a byte received.
///
/// ```
/// use gcp_wire::{Connection, ConnectionOptions, Credentials, Endpoint, Service};
/// # if !cfg!(any(feature = "tls-ring", feature = "tls-aws-lc")) { return Ok(()) }
/// let connection = Connection::unary(
///     Endpoint::production(Service::Pubsub),
///     Credentials::application_default(),
///     ConnectionOptions::default().client("shop-loader", "1.0"),
/// )?;
/// # Ok::<(), gcp_wire::WireError>(())
/// ```
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    kind: Kind,
    credentials: Credentials,
    options: ConnectionOptions,
    connector: Arc<Connector>,
    head: Head,
    slots: Vec<Slot>,
    next: AtomicUsize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unary,
    Pull,
}

impl Connection {
    /// Connections for unary calls.
    ///
    /// # Errors
    ///
    /// A [`WireError`] that names the setting. No I/O is done.
    pub fn unary(
        endpoint: Endpoint,
        credentials: Credentials,
        options: ConnectionOptions,
    ) -> Result<Self, WireError> {
        let windows = Windows::unary(REQUESTS_PER_CHANNEL);
        Self::new(
            Kind::Unary,
            endpoint,
            credentials,
            options,
            windows,
            REQUESTS_PER_CHANNEL,
        )
    }

    /// Connections for `streams` streaming pulls at one time, spread over the channels.
    ///
    /// Each stream has room for a successor beside it, opened before the old one is closed. The
    /// window of a connection is at least that of all its streams together and 1 MiB, so that no
    /// unread stream can hold up another; a stream's window is 2 MiB at most, since what waits in
    /// it is leased by the server and not yet seen by us.
    ///
    /// # Errors
    ///
    /// A [`WireError`] that names the setting: `streams` from 1 to 50 per channel, which with the
    /// successors is what a server allows on a connection. No I/O is done.
    pub fn pull(
        endpoint: Endpoint,
        credentials: Credentials,
        streams: usize,
        options: ConnectionOptions,
    ) -> Result<Self, WireError> {
        options.check()?;
        let per_channel = streams.div_ceil(options.channels);
        let allowed = REQUESTS_PER_CHANNEL / 2;
        if per_channel == 0 || per_channel > allowed {
            return Err(WireError::Streams {
                streams,
                channels: options.channels,
                most: allowed.saturating_mul(options.channels),
            });
        }
        let places = per_channel * 2;
        let windows = Windows::pull(places);
        Self::new(Kind::Pull, endpoint, credentials, options, windows, places)
    }

    fn new(
        kind: Kind,
        endpoint: Endpoint,
        credentials: Credentials,
        options: ConnectionOptions,
        windows: Windows,
        places: usize,
    ) -> Result<Self, WireError> {
        options.check()?;
        let (scheme, authority) = match endpoint.reach() {
            Reach::Tls { authority, .. } => {
                if !tls::AVAILABLE {
                    return Err(WireError::NoTls {
                        endpoint: endpoint.to_string(),
                    });
                }
                (Scheme::HTTPS, authority.as_http().clone())
            }
            Reach::Plain { authority } => (Scheme::HTTP, authority.as_http().clone()),
            Reach::Memory(_) => (Scheme::HTTP, Authority::from_static("memory")),
        };
        // An emulator gets no credentials, whatever the host has configured: they would go over
        // a plaintext port, and looking them up can take long or fail.
        let credentials = if endpoint.is_emulator() {
            Credentials::anonymous()
        } else {
            credentials
        };
        let head =
            Head::new(scheme, authority, &options.client).ok_or_else(|| WireError::Client {
                value: options.client.clone(),
            })?;
        let slots = (0..options.channels).map(|_| Slot::new(places)).collect();
        let connector = Arc::new(Connector::new(endpoint, &options, windows));
        let next = AtomicUsize::new(0);
        let shared = Shared {
            kind,
            credentials,
            options,
            connector,
            head,
            slots,
            next,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Calls `method` with `request`.
    ///
    /// `routing` is the value for the method's routing key, usually the full name of the resource
    /// it is about. `deadline` covers everything: waiting for a place, for credentials, for the
    /// connection, and for the answer. It is also told to the server; Cloud Tasks refuses more than
    /// 30 s.
    ///
    /// On UNAUTHENTICATED the credentials are invalidated and the request is sent once more. A
    /// request that no connection took, because the connection was just closing, is sent once more
    /// on a fresh one. Every other repetition is the caller's.
    ///
    /// # Errors
    ///
    /// An [`RpcError`], which says what became of the request.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future resets the stream; the request may have taken effect.
    pub async fn call<Req, Res>(
        &self,
        method: &Method<Req, Res>,
        routing: &str,
        request: Req,
        deadline: Duration,
    ) -> Result<Res, RpcError>
    where
        Req: Message,
        Res: FromAnswer,
    {
        let body = EncodedBody::encode(&request);
        drop(request);
        self.call_encoded(method, routing, body, deadline).await
    }

    /// Calls `method` with a request that is encoded already; otherwise as [`call`](Self::call).
    ///
    /// The bytes are sent as they are, without a copy, and can be sent again.
    ///
    /// # Errors
    ///
    /// An [`RpcError`], which says what became of the request.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future resets the stream; the request may have taken effect.
    pub async fn call_encoded<Req, Res>(
        &self,
        method: &Method<Req, Res>,
        routing: &str,
        body: EncodedBody,
        deadline: Duration,
    ) -> Result<Res, RpcError>
    where
        Res: FromAnswer,
    {
        call::unary(&self.shared, method, routing, body, deadline).await
    }

    /// Opens a streaming pull, with `first` already queued.
    ///
    /// Returns as soon as the request is on a connection, and does not wait for the server: on an
    /// idle subscription it sends nothing, not even headers. Await this, and the stream, inside the
    /// stream's own task. Takes at most the connect timeout and 20 s for credentials.
    ///
    /// # Errors
    ///
    /// An [`RpcError`]: no free place, no credentials, or no connection in time; nothing was sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the stream; nothing was received.
    pub async fn open_pull(&self, first: StreamingPullRequest) -> Result<PullStream, RpcError> {
        pull::open(&self.shared, first).await
    }
}

impl Shared {
    /// The channel with the most free places; turns about where several have as many.
    fn slot(&self) -> &Slot {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.slots.len();
        let mut best = &self.slots[turn % count];
        for step in 1..count {
            let slot = &self.slots[(turn + step) % count];
            if slot.free() > best.free() {
                best = slot;
            }
        }
        best
    }

    fn expect_kind(&self, kind: Kind, method: &'static str) -> Result<(), RpcError> {
        match (self.kind, kind) {
            (Kind::Unary, Kind::Unary) | (Kind::Pull, Kind::Pull) => Ok(()),
            (Kind::Pull, Kind::Unary) => Err(RpcError::new(
                method,
                Cause::Refused(Refusal::UnaryOnPullConnection),
            )),
            (Kind::Unary, Kind::Pull) => Err(RpcError::new(
                method,
                Cause::Refused(Refusal::PullOnUnaryConnection),
            )),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("kind", &self.shared.kind)
            .field("endpoint", self.shared.connector.endpoint())
            .field("credentials", &self.shared.credentials)
            .field("options", &self.shared.options)
            .finish()
    }
}
