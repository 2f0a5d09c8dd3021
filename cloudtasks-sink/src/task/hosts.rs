//! Which hosts tasks may call.

use std::collections::BTreeSet;

use super::url::TargetUrl;

/// A list of hosts, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowedHosts(BTreeSet<String>);

impl AllowedHosts {
    /// The list, or the entry that is no host.
    pub(crate) fn parse(hosts: Vec<String>) -> Result<Self, String> {
        let mut allowed = BTreeSet::new();
        for host in hosts {
            let lower = host.to_ascii_lowercase();
            if !TargetUrl::is_host(&lower) {
                return Err(host);
            }
            allowed.insert(lower);
        }
        Ok(Self(allowed))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether tasks may call `host`, which is in lower case already.
    pub(super) fn contains(&self, host: &str) -> bool {
        self.0.contains(host)
    }
}
