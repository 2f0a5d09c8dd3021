//! The URL of a target.

use std::ops::Range;

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
    host: Host,
}

/// The host that a URL names: in lower case, IPv6 addresses in brackets, without the port.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    /// As it stands there, which what is added to the path or the query does not move.
    AsWritten(Range<usize>),
    Lowered(String),
}

impl TargetUrl {
    pub(super) fn parse(text: String) -> Result<Self, TaskError> {
        let fail = |rule| TaskError::Url {
            url: excerpt(text.split('?').next().unwrap_or_default()),
            rule,
        };
        let server_at = ["http://", "https://"]
            .into_iter()
            .find(|scheme| text.starts_with(scheme))
            .map(str::len)
            .ok_or_else(|| fail(UrlRule::Scheme))?;
        // One look at each byte finds all that there is to find: encoders make many URLs.
        let (mut is_plain, mut has_fragment) = (true, false);
        let (mut path_at, mut mark) = (None, None);
        for (at, byte) in text.bytes().enumerate().skip(server_at) {
            is_plain &= byte.is_ascii_graphic();
            match byte {
                b'#' => has_fragment = true,
                b'/' if path_at.is_none() => path_at = Some(at),
                b'?' if mark.is_none() => {
                    mark = Some(at);
                    path_at = path_at.or(mark);
                }
                _ => {}
            }
        }
        let is_unfit = |symbol: char| symbol.is_whitespace() || symbol.is_control();
        // Most are plain text, which is told without decoding it.
        if !is_plain && text.chars().any(is_unfit) {
            return Err(fail(UrlRule::Whitespace));
        }
        if has_fragment {
            return Err(fail(UrlRule::Fragment));
        }
        let server = server_at..path_at.unwrap_or(text.len());
        let authority = text.get(server).unwrap_or_default();
        if authority.bytes().any(|byte| byte == b'\\') {
            return Err(fail(UrlRule::Backslash));
        }
        let within = host_within(authority).map_err(fail)?;
        let written = authority.get(within.clone()).unwrap_or_default();
        let host = if written.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Host::Lowered(written.to_ascii_lowercase())
        } else {
            Host::AsWritten(server_at + within.start..server_at + within.end)
        };
        Ok(Self { text, mark, host })
    }

    /// Whether `text` is the host part of a URL, in lower case.
    pub(super) fn is_host(text: &str) -> bool {
        host_within(text).is_ok_and(|within| within == (0..text.len()))
            && !text.bytes().any(|byte| byte.is_ascii_uppercase())
    }

    pub(super) fn host(&self) -> &str {
        match &self.host {
            Host::AsWritten(within) => self.text.get(within.clone()).unwrap_or_default(),
            Host::Lowered(host) => host,
        }
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

/// Where in `user@host:port` the host is.
fn host_within(authority: &str) -> Result<Range<usize>, UrlRule> {
    let bytes = authority.as_bytes();
    let find = |from: usize, wanted: u8| {
        let behind = bytes.get(from..).unwrap_or_default();
        let at = behind.iter().position(|byte| *byte == wanted);
        at.map(|at| from + at)
    };
    // With two `@` some parsers take the first and some the last.
    let start = match find(0, b'@') {
        Some(at) if find(at + 1, b'@').is_some() => return Err(UrlRule::Host),
        Some(at) => at + 1,
        None => 0,
    };
    let end = if bytes.get(start) == Some(&b'[') {
        let bracket = find(start, b']').ok_or(UrlRule::Host)?;
        let address = authority.get(start + 1..bracket).unwrap_or_default();
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(UrlRule::Host);
        }
        if bytes.get(bracket + 1).is_some_and(|byte| *byte != b':') {
            return Err(UrlRule::Host);
        }
        bracket + 1
    } else {
        let end = find(start, b':').unwrap_or(bytes.len());
        let host = bytes.get(start..end).unwrap_or_default();
        let allowed =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if host.is_empty() || !host.iter().all(allowed) {
            return Err(UrlRule::Host);
        }
        end
    };
    let usable = |port: &str| {
        port.is_empty()
            || (port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok())
    };
    if let Some(port) = authority.get(end + 1..)
        && !usable(port)
    {
        return Err(UrlRule::Port);
    }
    Ok(start..end)
}
