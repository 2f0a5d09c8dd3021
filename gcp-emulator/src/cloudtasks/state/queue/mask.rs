//! Which settings an update replaces.

use prost_types::FieldMask;

use super::super::TaskRefusal;
use crate::cloudtasks::proto::{HttpTarget, Queue, RateLimits, RetryConfig, UriOverride};

/// `current` with the fields of `update` that the mask names; without a mask, all that can be set.
pub(in super::super) fn merge(
    current: Queue,
    update: Queue,
    mask: Option<&FieldMask>,
) -> Result<Queue, TaskRefusal> {
    let mut merged = current;
    let Some(mask) = mask else {
        return Ok(Queue {
            name: merged.name,
            state: merged.state,
            purge_time: merged.purge_time,
            ..update
        });
    };
    for path in &mask.paths {
        copy(&mut merged, &update, path)
            .ok_or_else(|| TaskRefusal::QueueMask { path: path.clone() })?;
    }
    Ok(merged)
}

/// Nothing for a path that is no field.
fn copy(into: &mut Queue, from: &Queue, path: &str) -> Option<()> {
    let (field, below) = path
        .split_once('.')
        .map_or((path, None), |(field, below)| (field, Some(below)));
    match (field, below) {
        // Output only, or what names the queue: asking for them changes nothing.
        ("name" | "state" | "purge_time", None) => {}
        ("app_engine_routing_override", None) => {
            into.app_engine_routing_override
                .clone_from(&from.app_engine_routing_override);
        }
        ("rate_limits", None) => into.rate_limits = from.rate_limits,
        ("rate_limits", Some(below)) => copy_rates(
            into.rate_limits.get_or_insert_default(),
            &from.rate_limits.unwrap_or_default(),
            below,
        )?,
        ("retry_config", None) => into.retry_config = from.retry_config,
        ("retry_config", Some(below)) => copy_retry(
            into.retry_config.get_or_insert_default(),
            &from.retry_config.unwrap_or_default(),
            below,
        )?,
        ("http_target", None) => into.http_target.clone_from(&from.http_target),
        ("http_target", Some(below)) => {
            let given = from.http_target.clone().unwrap_or_default();
            let target = into.http_target.get_or_insert_default();
            copy_target(target, given, below)?;
            if *target == HttpTarget::default() {
                into.http_target = None;
            }
        }
        _ => return None,
    }
    Some(())
}

fn copy_rates(into: &mut RateLimits, from: &RateLimits, field: &str) -> Option<()> {
    match field {
        "max_dispatches_per_second" => {
            into.max_dispatches_per_second = from.max_dispatches_per_second;
        }
        "max_concurrent_dispatches" => {
            into.max_concurrent_dispatches = from.max_concurrent_dispatches;
        }
        "max_burst_size" => {}
        _ => return None,
    }
    Some(())
}

fn copy_retry(into: &mut RetryConfig, from: &RetryConfig, field: &str) -> Option<()> {
    match field {
        "max_attempts" => into.max_attempts = from.max_attempts,
        "max_retry_duration" => into.max_retry_duration = from.max_retry_duration,
        "min_backoff" => into.min_backoff = from.min_backoff,
        "max_backoff" => into.max_backoff = from.max_backoff,
        "max_doublings" => into.max_doublings = from.max_doublings,
        _ => return None,
    }
    Some(())
}

fn copy_target(into: &mut HttpTarget, from: HttpTarget, path: &str) -> Option<()> {
    match path {
        "uri_override" => into.uri_override = from.uri_override,
        "http_method" => into.http_method = from.http_method,
        "header_overrides" => into.header_overrides = from.header_overrides,
        "oauth_token" | "oidc_token" => into.authorization_header = from.authorization_header,
        _ => {
            let field = path.strip_prefix("uri_override.")?;
            let given = from.uri_override.unwrap_or_default();
            let uri = into.uri_override.get_or_insert_default();
            copy_uri(uri, given, field)?;
            if *uri == UriOverride::default() {
                into.uri_override = None;
            }
        }
    }
    Some(())
}

fn copy_uri(into: &mut UriOverride, from: UriOverride, field: &str) -> Option<()> {
    match field {
        "scheme" => into.scheme = from.scheme,
        "host" => into.host = from.host,
        "port" => into.port = from.port,
        "path_override" => into.path_override = from.path_override,
        "query_override" => into.query_override = from.query_override,
        "uri_override_enforce_mode" => {
            into.uri_override_enforce_mode = from.uri_override_enforce_mode;
        }
        _ => return None,
    }
    Some(())
}
