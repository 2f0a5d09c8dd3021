//! The headers of a task.

use std::collections::BTreeMap;

use super::TaskError;
use super::error::{HeaderRule, excerpt};

/// Name and value together: from 8,189 bytes on, the service drops the header without a word
/// (recorded from the service: it keeps `name: value` and the line break within 8 KiB).
const TOO_LONG: usize = 8_189;

/// Names the service drops or, for User-Agent, replaces, in lower case. Host, Content-Length and
/// User-Agent are documented; the rest are hop-by-hop and proxy headers, recorded from the service
/// by the authors of the `cloud-tasks-emulator` crate.
const RESERVED: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-length",
    "from",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-forwarded-for",
];

/// Beginnings of names that the service keeps for itself.
const RESERVED_PREFIXES: [&str; 2] = ["x-google", "x-appengine"];

/// Headers by case-insensitive name, spelled as they were set last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Headers {
    entries: Vec<(String, String)>,
}

impl Headers {
    pub(super) fn set(&mut self, name: String, value: String) {
        self.entries
            .retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        self.entries.push((name, value));
    }

    /// The headers of a message, which may spell one name in two ways; each is checked.
    pub(super) fn of_map(map: BTreeMap<String, String>) -> Self {
        Self {
            entries: map.into_iter().collect(),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let mut entries = self.entries.iter();
        let found = entries.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.entries.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The rules for HTTP tasks.
    pub(super) fn check(&self) -> Result<(), TaskError> {
        self.check_all(|name| {
            RESERVED.contains(&name)
                || RESERVED_PREFIXES
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
        })
    }

    /// The rules for App Engine tasks, of which the service adds to a User-Agent and leaves the
    /// rest to the application (interface definition).
    pub(super) fn check_app_engine(&self) -> Result<(), TaskError> {
        self.check_all(|name| {
            ["host", "content-length"].contains(&name)
                || ["x-google-", "x-appengine-"]
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
        })
    }

    fn check_all(&self, is_reserved: impl Fn(&str) -> bool) -> Result<(), TaskError> {
        for (name, value) in &self.entries {
            if let Some(rule) = broken_rule(name, value, &is_reserved) {
                return Err(TaskError::Header {
                    name: excerpt(name),
                    rule,
                });
            }
        }
        Ok(())
    }

    pub(super) fn into_map(self) -> BTreeMap<String, String> {
        self.entries.into_iter().collect()
    }
}

fn broken_rule(name: &str, value: &str, is_reserved: impl Fn(&str) -> bool) -> Option<HeaderRule> {
    let lower = name.to_ascii_lowercase();
    if name.is_empty() || !name.bytes().all(is_token) {
        Some(HeaderRule::Name)
    } else if is_reserved(&lower) {
        Some(HeaderRule::Reserved)
    } else if value.is_empty() {
        Some(HeaderRule::Empty)
    } else if !value
        .bytes()
        .all(|byte| byte == b' ' || byte == b'\t' || byte.is_ascii_graphic())
    {
        Some(HeaderRule::Value)
    } else if name.len() + value.len() >= TOO_LONG {
        Some(HeaderRule::TooLong)
    } else {
        None
    }
}

/// RFC 9110's `tchar`.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
