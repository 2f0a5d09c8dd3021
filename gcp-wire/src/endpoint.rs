//! Where a service is: parsed once, checked once, and never taken from the environment in silence.

mod authority;
mod certificates;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use rustls_pki_types::CertificateDer;
use tokio::io::DuplexStream;

use self::authority::Authority;

/// The services that the connectors talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Service {
    /// Google Cloud Pub/Sub, `pubsub.googleapis.com`.
    Pubsub,
    /// Google Cloud Tasks, `cloudtasks.googleapis.com`.
    CloudTasks,
}

impl Service {
    /// The global host name of the service, without a port.
    #[must_use]
    pub const fn host(self) -> &'static str {
        match self {
            Self::Pubsub => "pubsub.googleapis.com",
            Self::CloudTasks => "cloudtasks.googleapis.com",
        }
    }

    /// The environment variable that names the emulator of this service.
    ///
    /// Only [`Endpoint::emulator_from_env`] reads it.
    #[must_use]
    pub const fn emulator_variable(self) -> &'static str {
        match self {
            Self::Pubsub => "PUBSUB_EMULATOR_HOST",
            Self::CloudTasks => "CLOUD_TASKS_EMULATOR_HOST",
        }
    }
}

/// Why an endpoint was refused; nothing was connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The text contains white space, which is never trimmed away.
    #[error("endpoint {value:?} contains white space; write it as \"host:port\"")]
    Whitespace {
        /// The text as given.
        value: String,
    },
    /// The text starts with a scheme such as `https://`.
    #[error("endpoint {value:?} has a scheme; write it as \"host:port\" without one")]
    Scheme {
        /// The text as given.
        value: String,
    },
    /// The text has no port.
    #[error("endpoint {value:?} has no port; write it as \"host:port\"")]
    MissingPort {
        /// The text as given.
        value: String,
    },
    /// The port is not a number from 1 to 65535.
    #[error("endpoint {value:?} has no usable port; write it as \"host:port\", port 1 to 65535")]
    Port {
        /// The text as given.
        value: String,
    },
    /// An IPv6 address stands without brackets, so that its port cannot be told from it.
    #[error("endpoint {value:?} looks like IPv6 without brackets; write it as \"[address]:port\"")]
    UnbracketedIpv6 {
        /// The text as given.
        value: String,
    },
    /// The host is neither a DNS name nor an IP address.
    #[error("endpoint {value:?} has no usable host; write it as \"host:port\"")]
    Host {
        /// The text as given.
        value: String,
    },
    /// The environment variable does not hold Unicode text.
    #[error("{variable} is not Unicode text; write it as \"host:port\" or leave it unset")]
    NotUnicode {
        /// The variable that was read.
        variable: &'static str,
    },
    /// The environment variable names no emulator.
    #[error("{variable} names no emulator; correct it or leave it unset")]
    Variable {
        /// The variable that was read.
        variable: &'static str,
        /// What is wrong with its value.
        #[source]
        cause: Box<Self>,
    },
    /// The region is not a Google Cloud location id.
    #[error("region {value:?} is not a location id; write it like \"us-central1\"")]
    Region {
        /// The text as given.
        value: String,
    },
    /// The certificate bundle holds no certificate.
    #[error("the CA bundle holds no certificate; give PEM text with a CERTIFICATE block")]
    NoCertificate,
    /// A block of the certificate bundle is damaged.
    #[error("certificate {position} of the CA bundle is damaged; give intact PEM text")]
    DamagedCertificate {
        /// Which block, counted from 1.
        position: usize,
    },
    /// Certificates were given to an endpoint that does not use TLS.
    #[error("a CA was given to {endpoint}, which does not use TLS; give it to a TLS endpoint")]
    CaWithoutTls {
        /// The endpoint as it prints itself.
        endpoint: String,
    },
}

/// Where a service is reached, and how.
///
/// Cheap to clone. Nothing is looked up or connected before the first RPC.
#[derive(Clone)]
pub struct Endpoint {
    reach: Reach,
}

#[derive(Clone)]
#[cfg_attr(
    not(any(feature = "tls-ring", feature = "tls-aws-lc")),
    expect(dead_code, reason = "only TLS reads it")
)]
pub(crate) enum Reach {
    /// TLS, with the system's roots or the given ones.
    Tls { authority: Authority, roots: Roots },
    /// Plaintext to an emulator.
    Plain { authority: Authority },
    /// A pipe inside this process.
    Memory(Dial),
}

#[derive(Clone)]
#[cfg_attr(
    not(any(feature = "tls-ring", feature = "tls-aws-lc")),
    expect(dead_code, reason = "only TLS reads it")
)]
pub(crate) enum Roots {
    System,
    Given(Arc<[CertificateDer<'static>]>),
    File(Arc<PathBuf>),
}

pub(crate) type Dial = Arc<dyn Fn() -> io::Result<DuplexStream> + Send + Sync>;

impl Endpoint {
    /// The production service, at its global host, port 443, TLS with the system's roots.
    #[must_use]
    pub fn production(service: Service) -> Self {
        let host = http::uri::Authority::from_static(service.host());
        Self::encrypted(Authority::https(host))
    }

    /// The production service in one region, so that requests and data stay in it.
    ///
    /// Pub/Sub: `{region}-pubsub.googleapis.com`, its locational endpoint; required for per-key
    /// ordering across publishers in different regions. Cloud Tasks:
    /// `cloudtasks.{region}.rep.googleapis.com`, the form of Google's regional endpoints, which
    /// serve only queues of their own region.
    ///
    /// # Errors
    ///
    /// [`EndpointError::Region`] when `region` is not lower-case letters, digits and hyphens.
    pub fn regional(service: Service, region: &str) -> Result<Self, EndpointError> {
        let refused = || EndpointError::Region {
            value: region.to_owned(),
        };
        if !authority::is_label(region)
            || region
                .bytes()
                .any(|byte| byte.is_ascii_uppercase() || byte == b'_')
        {
            return Err(refused());
        }
        let host = match service {
            Service::Pubsub => format!("{region}-{}", service.host()),
            Service::CloudTasks => format!("cloudtasks.{region}.rep.googleapis.com"),
        };
        let host: http::uri::Authority = host.parse().map_err(|_| refused())?;
        Ok(Self::encrypted(Authority::https(host)))
    }

    /// An emulator at `host:port`: plaintext, no credentials are ever sent, no HTTP/2 keepalive.
    ///
    /// # Errors
    ///
    /// An [`EndpointError`] that quotes `host_port` and the expected form: white space, a scheme,
    /// a missing or unusable port, IPv6 without brackets, an unusable host.
    pub fn emulator(host_port: &str) -> Result<Self, EndpointError> {
        Ok(Self {
            reach: Reach::Plain {
                authority: Authority::parse(host_port)?,
            },
        })
    }

    /// The emulator that `PUBSUB_EMULATOR_HOST` or `CLOUD_TASKS_EMULATOR_HOST` names.
    ///
    /// `None` when the variable is unset or empty. Here, and only here, an `http://` prefix and
    /// one trailing slash are tolerated, since people write them. No constructor of this type and
    /// no connector reads these variables by itself: a stray variable must not redirect a
    /// production job.
    ///
    /// # Errors
    ///
    /// [`EndpointError::NotUnicode`], and [`EndpointError::Variable`], whose source is the error of
    /// [`emulator`](Self::emulator).
    pub fn emulator_from_env(service: Service) -> Result<Option<Self>, EndpointError> {
        let variable = service.emulator_variable();
        Self::emulator_from_value(variable, std::env::var_os(variable))
    }

    pub(crate) fn emulator_from_value(
        variable: &'static str,
        value: Option<OsString>,
    ) -> Result<Option<Self>, EndpointError> {
        let Some(value) = value else { return Ok(None) };
        let value = value
            .into_string()
            .map_err(|_| EndpointError::NotUnicode { variable })?;
        if value.is_empty() {
            return Ok(None);
        }
        let stripped = value.strip_prefix("http://").unwrap_or(&value);
        let stripped = stripped.strip_suffix('/').unwrap_or(stripped);
        // The error quotes what the person wrote, not what was left of it.
        let authority = Authority::parse_quoting(stripped, &value).map_err(|cause| {
            let cause = Box::new(cause);
            EndpointError::Variable { variable, cause }
        })?;
        Ok(Some(Self {
            reach: Reach::Plain { authority },
        }))
    }

    /// A TLS server at `host:port`, for private endpoints and tests.
    ///
    /// Credentials are sent to it, so it must be one you trust with them.
    ///
    /// # Errors
    ///
    /// As [`emulator`](Self::emulator).
    pub fn tls(host_port: &str) -> Result<Self, EndpointError> {
        Ok(Self::encrypted(Authority::parse(host_port)?))
    }

    /// Trust exactly the certificates of this PEM text, instead of the system's roots.
    ///
    /// # Errors
    ///
    /// [`EndpointError::NoCertificate`] when the text holds none: such a bundle would otherwise
    /// fail much later as an unknown issuer. [`EndpointError::DamagedCertificate`] names the block.
    /// [`EndpointError::CaWithoutTls`] on an endpoint without TLS.
    pub fn ca_pem(self, pem: impl Into<Bytes>) -> Result<Self, EndpointError> {
        let certificates = certificates::parse(&pem.into())?;
        self.trusting(Roots::Given(certificates.into()))
    }

    /// Trust exactly the certificates of this PEM file, instead of the system's roots.
    ///
    /// The file is read by the driver when it connects, not here. A file that cannot be read or
    /// holds no certificate fails every call with an error that names it.
    ///
    /// # Errors
    ///
    /// [`EndpointError::CaWithoutTls`] on an endpoint without TLS.
    pub fn ca_file(self, path: impl Into<PathBuf>) -> Result<Self, EndpointError> {
        self.trusting(Roots::File(Arc::new(path.into())))
    }

    fn trusting(self, roots: Roots) -> Result<Self, EndpointError> {
        match self.reach {
            Reach::Tls { authority, .. } => Ok(Self {
                reach: Reach::Tls { authority, roots },
            }),
            Reach::Plain { .. } | Reach::Memory(_) => Err(EndpointError::CaWithoutTls {
                endpoint: self.to_string(),
            }),
        }
    }

    /// A server in this process: `dial` gives the client's end of a fresh pipe per connection.
    ///
    /// Counts as an emulator. With tokio's paused clock the whole exchange runs in virtual time.
    #[must_use]
    pub fn in_memory(dial: impl Fn() -> io::Result<DuplexStream> + Send + Sync + 'static) -> Self {
        Self {
            reach: Reach::Memory(Arc::new(dial)),
        }
    }

    /// Whether this is an emulator: no credentials are sent, and no HTTP/2 keepalive is used.
    #[must_use]
    pub const fn is_emulator(&self) -> bool {
        match self.reach {
            Reach::Tls { .. } => false,
            Reach::Plain { .. } | Reach::Memory(_) => true,
        }
    }

    pub(crate) const fn reach(&self) -> &Reach {
        &self.reach
    }

    fn encrypted(authority: Authority) -> Self {
        Self {
            reach: Reach::Tls {
                authority,
                roots: Roots::System,
            },
        }
    }
}

#[cfg_attr(
    not(any(feature = "tls-ring", feature = "tls-aws-lc")),
    expect(dead_code, reason = "only TLS reads it")
)]
pub(crate) fn parse_certificates(
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, EndpointError> {
    certificates::parse(pem)
}

/// Prints the URL of the endpoint, for example `https://pubsub.googleapis.com:443`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reach {
            Reach::Tls { authority, .. } => write!(f, "https://{authority}"),
            Reach::Plain { authority } => write!(f, "http://{authority}"),
            Reach::Memory(_) => f.write_str("memory:"),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint")
            .field(&format_args!("{self}"))
            .finish()
    }
}

#[cfg(test)]
mod tests;
