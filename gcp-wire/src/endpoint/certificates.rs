use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::EndpointError;

/// The certificates of a PEM text, counted: an empty list parses without complaint elsewhere and
/// then fails at the first handshake as an unknown issuer.
pub(super) fn parse(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, EndpointError> {
    let mut certificates = Vec::new();
    for block in CertificateDer::pem_slice_iter(pem) {
        let position = certificates.len() + 1;
        certificates.push(block.map_err(|_| EndpointError::DamagedCertificate { position })?);
    }
    if certificates.is_empty() {
        return Err(EndpointError::NoCertificate);
    }
    Ok(certificates)
}
