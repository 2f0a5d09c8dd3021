//! The URL of a target.

use super::error::{UrlRule, excerpt};
use super::{TaskError, path};

/// An absolute `http` or `https` URL without a fragment.
///
/// Parsed just far enough to know for certain which host it names, and refused where two parsers
/// could disagree: a host that is checked must be the host that is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TargetUrl {
    text: String,
    /// Where the question mark stands, if there is one: the path ends there and the query begins
    /// behind it.
    mark: Option<usize>,
    /// In lower case, IPv6 addresses in brackets, without the port.
    host: String,
}

impl TargetUrl {
    pub(super) fn parse(text: String) -> Result<Self, TaskError> {
        let fail = |rule| TaskError::Url {
            url: excerpt(text.split('?').next().unwrap_or_default()),
            rule,
        };
        let rest = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"))
            .ok_or_else(|| fail(UrlRule::Scheme))?;
        let is_unfit = |symbol: char| symbol.is_whitespace() || symbol.is_control();
        // Most are plain text, which is told without decoding it.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain && text.chars().any(is_unfit) {
            return Err(fail(UrlRule::Whitespace));
        }
        if text.contains('#') {
            return Err(fail(UrlRule::Fragment));
        }
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        if authority.contains('\\') {
            return Err(fail(UrlRule::Backslash));
        }
        let host = host_of(authority).map_err(fail)?;
        let mark = text.find('?');
        Ok(Self { text, mark, host })
    }

    /// Whether `text` is the host part of a URL, in lower case.
    pub(super) fn is_host(text: &str) -> bool {
        host_of(text).is_ok_and(|host| host == text)
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn without_query(&self) -> &str {
        let end = self.mark.unwrap_or(self.text.len());
        self.text.get(..end).unwrap_or(&self.text)
    }

    pub(super) fn into_string(self) -> String {
        self.text
    }

    pub(super) fn push_segment(&mut self, segment: &str) -> Result<(), TaskError> {
        let (mut path, query) = self.parts();
        path::push_segment(&mut path, segment)?;
        self.join(path, query);
        Ok(())
    }

    pub(super) fn push_query(&mut self, key: &str, value: &str) {
        let (path, mut query) = self.parts();
        path::push_query(&mut query, key, value);
        self.join(path, query);
    }

    fn parts(&self) -> (String, Option<String>) {
        match self.text.split_once('?') {
            Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
            None => (self.text.clone(), None),
        }
    }

    fn join(&mut self, path: String, query: Option<String>) {
        self.mark = query.is_some().then_some(path.len());
        self.text = path;
        if let Some(query) = query {
            self.text.push('?');
            self.text.push_str(&query);
        }
    }
}

/// The host of `user@host:port`, in lower case.
fn host_of(authority: &str) -> Result<String, UrlRule> {
    // With two `@` some parsers take the first and some the last.
    let server = match authority.split_once('@') {
        Some((_, server)) if server.contains('@') => return Err(UrlRule::Host),
        Some((_, server)) => server,
        None => authority,
    };
    let (host, port) = if let Some(bracketed) = server.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']').ok_or(UrlRule::Host)?;
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(UrlRule::Host);
        }
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port),
            None if rest.is_empty() => None,
            None => return Err(UrlRule::Host),
        };
        (format!("[{}]", address.to_ascii_lowercase()), port)
    } else {
        let (host, port) = match server.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (server, None),
        };
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if host.is_empty() || !host.bytes().all(allowed) {
            return Err(UrlRule::Host);
        }
        (host.to_ascii_lowercase(), port)
    };
    let usable = |port: &str| {
        port.is_empty()
            || (port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok())
    };
    if port.is_some_and(|port| !usable(port)) {
        return Err(UrlRule::Port);
    }
    Ok(host)
}
