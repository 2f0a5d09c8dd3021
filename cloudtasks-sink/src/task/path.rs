//! Text of records in paths and query strings.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::TaskError;

/// Everything but RFC 3986's unreserved characters: what is left has no meaning in a path or query.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Adds one segment, percent-encoded.
pub(super) fn push_segment(path: &mut String, segment: &str) -> Result<(), TaskError> {
    // Dots are unreserved, and URL parsers treat `%2e` like them, so these cannot be encoded.
    if matches!(segment, "" | "." | "..") {
        return Err(TaskError::Segment {
            segment: segment.to_owned(),
        });
    }
    if !path.ends_with('/') {
        path.push('/');
    }
    path.extend(utf8_percent_encode(segment, RESERVED));
    Ok(())
}

/// Adds one pair, percent-encoded.
pub(super) fn push_query(query: &mut Option<String>, key: &str, value: &str) {
    let query = query.get_or_insert_default();
    if !query.is_empty() {
        query.push('&');
    }
    query.extend(utf8_percent_encode(key, RESERVED));
    query.push('=');
    query.extend(utf8_percent_encode(value, RESERVED));
}
