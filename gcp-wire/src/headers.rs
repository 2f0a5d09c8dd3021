//! The headers of a request.

use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method as HttpMethod, Request, Uri, Version};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986, so that `/` and `:` are encoded too.
const ROUTING: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// What is the same in all requests of a connection.
#[derive(Debug)]
pub(crate) struct Head {
    scheme: Scheme,
    authority: Authority,
    common: HeaderMap,
}

impl Head {
    /// `None` when `client` cannot stand in a header.
    pub(crate) fn new(scheme: Scheme, authority: Authority, client: &str) -> Option<Self> {
        let wire = concat!("gcp-wire/", env!("CARGO_PKG_VERSION"));
        let api = concat!(
            "gl-rust/",
            env!("CARGO_PKG_RUST_VERSION"),
            " gccl/",
            env!("CARGO_PKG_VERSION"),
            " grpc/",
            env!("CARGO_PKG_VERSION"),
        );
        let joined = |first: &str| {
            let text = if client.is_empty() {
                first.to_owned()
            } else {
                format!("{first} {client}")
            };
            HeaderValue::try_from(text).ok()
        };
        let mut common = HeaderMap::new();
        common.insert("user-agent", joined(wire)?);
        common.insert("x-goog-api-client", joined(api)?);
        common.insert("content-type", HeaderValue::from_static("application/grpc"));
        common.insert("te", HeaderValue::from_static("trailers"));
        Some(Self {
            scheme,
            authority,
            common,
        })
    }

    /// The request for `path`, with `body`. `None` when the routing value or the path is unusable.
    pub(crate) fn request<B>(&self, path: &'static str, body: B) -> Option<Request<B>> {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
        let mut request = Request::new(body);
        *request.method_mut() = HttpMethod::POST;
        *request.uri_mut() = Uri::from_parts(parts).ok()?;
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = self.common.clone();
        Some(request)
    }
}

/// `{key}={value}`, the value percent-encoded.
pub(crate) fn routing(key: &str, value: &str) -> Option<HeaderValue> {
    format!("{key}={}", utf8_percent_encode(value, ROUTING))
        .try_into()
        .ok()
}

/// The time left, in the form of `grpc-timeout`: at most eight digits and a unit.
pub(crate) fn timeout(left: Duration) -> HeaderValue {
    let millis = left.as_millis().max(1);
    if millis < 100_000_000 {
        HeaderValue::try_from(format!("{millis}m"))
    } else {
        HeaderValue::try_from(format!("{}S", left.as_secs().min(99_999_999)))
    }
    .unwrap_or(const { HeaderValue::from_static("1S") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routing_values_are_percent_encoded() {
        let header = |value| routing("parent", value).unwrap();
        assert_eq!(
            header("projects/demo/locations/us-central1/queues/q1"),
            "parent=projects%2Fdemo%2Flocations%2Fus-central1%2Fqueues%2Fq1"
        );
        assert_eq!(
            header("projects/example.com:demo"),
            "parent=projects%2Fexample.com%3Ademo"
        );
        assert_eq!(header("a+b%c~é"), "parent=a%2Bb%25c~%C3%A9");
        assert_eq!(routing("topic.name", "t").unwrap(), "topic.name=t");
    }

    #[test]
    fn a_timeout_has_at_most_eight_digits() {
        let cases = [
            (Duration::ZERO, "1m"),
            (Duration::from_millis(1_500), "1500m"),
            (Duration::from_millis(99_999_999), "99999999m"),
            (Duration::from_secs(100_000), "100000S"),
            (Duration::MAX, "99999999S"),
        ];
        for (left, text) in cases {
            assert_eq!(timeout(left), text);
        }
    }

    #[test]
    fn every_request_says_who_sends_it() {
        let authority = Authority::from_static("pubsub.googleapis.com");
        let head = Head::new(Scheme::HTTPS, authority.clone(), "pubsub-sink/1.2.3").unwrap();
        let request = head.request("/a.B/C", ()).unwrap();
        assert_eq!(request.uri(), "https://pubsub.googleapis.com/a.B/C");
        let api = request.headers()["x-goog-api-client"].to_str().unwrap();
        assert!(
            api.starts_with("gl-rust/") && api.contains(" gccl/"),
            "{api}"
        );
        assert!(api.ends_with(" pubsub-sink/1.2.3"), "{api}");
        assert!(Head::new(Scheme::HTTPS, authority, "line\nbreak").is_none());
    }
}
