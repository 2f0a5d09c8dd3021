use std::fmt;
use std::net::Ipv6Addr;

use super::EndpointError;

/// A checked host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    inner: http::uri::Authority,
    port: u16,
}

impl Authority {
    /// A public host on the port of HTTPS, which is left out of the `:authority` of a request.
    pub(super) fn https(host: impl Into<http::uri::Authority>) -> Self {
        Self {
            inner: host.into(),
            port: 443,
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, EndpointError> {
        Self::parse_quoting(text, text)
    }

    /// Parses `text`; errors quote `written`.
    pub(super) fn parse_quoting(text: &str, written: &str) -> Result<Self, EndpointError> {
        let value = || written.to_owned();
        if written.chars().any(char::is_whitespace) {
            return Err(EndpointError::Whitespace { value: value() });
        }
        if text.contains("://") {
            return Err(EndpointError::Scheme { value: value() });
        }
        let port = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest
                    .split_once(']')
                    .ok_or_else(|| EndpointError::Host { value: value() })?;
                address
                    .parse::<Ipv6Addr>()
                    .map_err(|_| EndpointError::Host { value: value() })?;
                match port.strip_prefix(':') {
                    Some(port) => port,
                    None if port.is_empty() => port,
                    None => return Err(EndpointError::Port { value: value() }),
                }
            }
            None => match text.split_once(':') {
                None => return Err(EndpointError::MissingPort { value: value() }),
                Some((_, rest)) if rest.contains(':') => {
                    return Err(EndpointError::UnbracketedIpv6 { value: value() });
                }
                Some((host, _)) if !is_host(host) => {
                    return Err(EndpointError::Host { value: value() });
                }
                Some((_, port)) => port,
            },
        };
        if port.is_empty() {
            return Err(EndpointError::MissingPort { value: value() });
        }
        // `u16::from_str` also accepts a plus sign.
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        match port.parse::<u16>() {
            Ok(port) if digits && port > 0 => {
                let inner = text
                    .parse()
                    .map_err(|_| EndpointError::Host { value: value() })?;
                Ok(Self { inner, port })
            }
            Ok(_) | Err(_) => Err(EndpointError::Port { value: value() }),
        }
    }

    /// The host as it stands in a certificate: IPv6 without brackets.
    #[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
    pub(crate) fn host(&self) -> &str {
        self.inner
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
    }

    pub(crate) const fn as_http(&self) -> &http::uri::Authority {
        &self.inner
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.inner.host(), self.port)
    }
}

/// A DNS name (RFC 1123 labels; underscores too, which container networks use) or an IPv4 address.
fn is_host(host: &str) -> bool {
    host.len() <= 253
        && host
            .strip_suffix('.')
            .unwrap_or(host)
            .split('.')
            .all(is_label)
}

/// One label of a DNS name: 1 to 63 letters, digits, hyphens or underscores, no hyphen at an end.
pub(super) fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}
