//! TLS, with the provider chosen explicitly: a process may hold two providers or none, and then
//! asking rustls for "the" provider panics.

#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
pub(super) use self::enabled::Tls;

/// Whether the crate was built with TLS.
pub(super) const AVAILABLE: bool = cfg!(any(feature = "tls-ring", feature = "tls-aws-lc"));

#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
mod enabled {
    use std::io;
    use std::path::Path;
    use std::sync::Arc;

    use rustls_pki_types::{CertificateDer, ServerName};
    use tokio::io::{AsyncRead, AsyncWrite};
    use tokio::sync::OnceCell;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;
    use tokio_rustls::rustls::crypto::CryptoProvider;
    use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

    use crate::channel::connect::ConnectError;
    use crate::endpoint::{self, Roots};

    /// The protocol name of HTTP/2 in ALPN.
    const HTTP2: &[u8] = b"h2";

    /// The TLS configuration of an endpoint, made when it first connects, since that reads files.
    #[derive(Debug, Default)]
    pub(in crate::channel) struct Tls {
        config: OnceCell<Arc<ClientConfig>>,
    }

    impl Tls {
        pub(in crate::channel) async fn session<S>(
            &self,
            stream: S,
            host: &str,
            roots: &Roots,
        ) -> Result<TlsStream<S>, ConnectError>
        where
            S: AsyncRead + AsyncWrite + Unpin + Send,
        {
            let config = self.config.get_or_try_init(|| configure(roots)).await?;
            let name = ServerName::try_from(host.to_owned())
                .map_err(|error| ConnectError::tls(io::Error::other(error)))?;
            let session = TlsConnector::from(Arc::clone(config))
                .connect(name, stream)
                .await
                .map_err(ConnectError::tls)?;
            if session.get_ref().1.alpn_protocol() == Some(HTTP2) {
                Ok(session)
            } else {
                Err(ConnectError::NotHttp2)
            }
        }
    }

    async fn configure(roots: &Roots) -> Result<Arc<ClientConfig>, ConnectError> {
        let roots = roots.clone();
        tokio::task::spawn_blocking(move || config(&roots))
            .await
            .unwrap_or(Err(ConnectError::Gone))
    }

    fn config(roots: &Roots) -> Result<Arc<ClientConfig>, ConnectError> {
        let mut store = RootCertStore::empty();
        match roots {
            Roots::System => {
                // Damaged certificates of a system are common and harmless; no roots at all is not.
                let (added, _) =
                    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if added == 0 {
                    return Err(ConnectError::NoSystemRoots);
                }
            }
            Roots::Given(certificates) => add(&mut store, certificates)?,
            Roots::File(path) => add(&mut store, &read(path)?)?,
        }
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_root_certificates(store)
            .with_no_client_auth();
        config.alpn_protocols.push(HTTP2.to_vec());
        Ok(Arc::new(config))
    }

    fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
        let named = || path.display().to_string();
        let pem = std::fs::read(path).map_err(|error| ConnectError::CaUnreadable {
            path: named(),
            source: Arc::new(error),
        })?;
        endpoint::parse_certificates(&pem).map_err(|source| ConnectError::CaUnusable {
            path: named(),
            source,
        })
    }

    fn add(
        store: &mut RootCertStore,
        certificates: &[CertificateDer<'static>],
    ) -> Result<(), ConnectError> {
        certificates
            .iter()
            .try_for_each(|certificate| store.add(certificate.clone()))
            .map_err(invalid)
    }

    fn invalid(error: Error) -> ConnectError {
        ConnectError::tls(io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// The host's own provider if it installed one, else that of our feature.
    fn provider() -> Arc<CryptoProvider> {
        if let Some(provider) = CryptoProvider::get_default() {
            return Arc::clone(provider);
        }
        #[cfg(feature = "tls-ring")]
        let provider = tokio_rustls::rustls::crypto::ring::default_provider();
        #[cfg(not(feature = "tls-ring"))]
        let provider = tokio_rustls::rustls::crypto::aws_lc_rs::default_provider();
        Arc::new(provider)
    }
}
