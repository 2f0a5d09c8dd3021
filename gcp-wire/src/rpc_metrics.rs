//! Counts RPCs through the `metrics` facade, when the feature `metrics` is on.

use std::time::Duration;

use crate::status::RpcError;

/// How many RPCs ended, by `method` and `code`.
#[cfg(any(feature = "metrics", test))]
pub(crate) const COUNT: &str = "gcp_wire_rpcs_total";
/// How long they took, in seconds, by `method` and `code`.
#[cfg(any(feature = "metrics", test))]
pub(crate) const SECONDS: &str = "gcp_wire_rpc_seconds";
/// How many connections were made, by `outcome`.
#[cfg(any(feature = "metrics", test))]
pub(crate) const CONNECTIONS: &str = "gcp_wire_connections_total";

#[cfg(feature = "metrics")]
pub(crate) fn rpc<T>(method: &'static str, outcome: &Result<T, RpcError>, took: Duration) {
    let code = outcome
        .as_ref()
        .err()
        .map_or(crate::Code::Ok, RpcError::code)
        .name();
    metrics::counter!(COUNT, "method" => method, "code" => code).increment(1);
    metrics::histogram!(SECONDS, "method" => method, "code" => code).record(took.as_secs_f64());
}

#[cfg(not(feature = "metrics"))]
pub(crate) const fn rpc<T>(_: &'static str, _: &Result<T, RpcError>, _: Duration) {}

#[cfg(feature = "metrics")]
pub(crate) fn connection(made: bool) {
    let outcome = if made { "made" } else { "failed" };
    metrics::counter!(CONNECTIONS, "outcome" => outcome).increment(1);
}

#[cfg(not(feature = "metrics"))]
pub(crate) const fn connection(_: bool) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_lists_exactly_the_names_in_the_code() {
        let readme = include_str!("../README.md");
        let listed: Vec<&str> = readme
            .split('`')
            .filter(|text| text.starts_with("gcp_wire_"))
            .collect();
        assert_eq!(listed, [COUNT, SECONDS, CONNECTIONS]);
    }
}
