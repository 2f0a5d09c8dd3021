//! The headers of a request.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method as HttpMethod, Request, Uri, Version};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986, so that `/` and `:` are encoded too.
const ROUTING: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// By what a request is routed.
pub(crate) static PARAMS: HeaderName = HeaderName::from_static("x-goog-request-params");
/// The time that is left for a request.
pub(crate) static TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// How a request's messages are compressed.
pub(crate) static ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// The verdict on a request.
pub(crate) static STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Paths whose targets are kept: more than the two services together have.
const MAX_TARGETS: usize = 64;

/// What is the same in all requests of a connection.
///
/// Requests are many and differ in little: names of headers are parsed once, and targets and what
/// was made last are kept. Anew for each call they were a tenth of its cost.
#[derive(Debug)]
pub(crate) struct Head {
    scheme: Scheme,
    authority: Authority,
    common: HeaderMap,
    targets: Mutex<Vec<(&'static str, Uri)>>,
    routed: Mutex<Option<Routed>>,
    made: Mutex<Made>,
}

/// The headers of a request, and what is in them besides what is common to all.
#[derive(Debug, Default)]
struct Made {
    routing: Option<HeaderValue>,
    millis: Option<u64>,
    headers: HeaderMap,
}

/// A routing header, and what it was made of.
#[derive(Debug)]
struct Routed {
    key: &'static str,
    value: String,
    header: HeaderValue,
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
        let made = Made {
            headers: common.clone(),
            ..Made::default()
        };
        Some(Self {
            scheme,
            authority,
            common,
            targets: Mutex::default(),
            routed: Mutex::default(),
            made: Mutex::new(made),
        })
    }

    /// The request for `path`, with `body`: routed by `routing`, and with so much time, if any.
    /// `None` when the path is unusable.
    pub(crate) fn request<B>(
        &self,
        path: &'static str,
        routing: Option<HeaderValue>,
        left: Option<Duration>,
        body: B,
    ) -> Option<Request<B>> {
        let mut request = Request::new(body);
        *request.method_mut() = HttpMethod::POST;
        *request.uri_mut() = self.target(path)?;
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = self.headers(routing, left.map(told));
        Some(request)
    }

    fn headers(&self, routing: Option<HeaderValue>, millis: Option<u64>) -> HeaderMap {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.routing != routing || made.millis != millis {
            let mut headers = self.common.clone();
            if let Some(routing) = routing.clone() {
                headers.insert(&PARAMS, routing);
            }
            if let Some(millis) = millis {
                headers.insert(&TIMEOUT, timeout(millis));
            }
            *made = Made {
                routing,
                millis,
                headers,
            };
        }
        made.headers.clone()
    }

    fn target(&self, path: &'static str) -> Option<Uri> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, uri)) = targets.iter().find(|(known, _)| *known == path) {
            return Some(uri.clone());
        }
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
        let uri = Uri::from_parts(parts).ok()?;
        if targets.len() < MAX_TARGETS {
            targets.push((path, uri.clone()));
        }
        Some(uri)
    }

    /// `{key}={value}`, the value percent-encoded. `None` when it cannot stand in a header.
    pub(crate) fn routing(&self, key: &'static str, value: &str) -> Option<HeaderValue> {
        let mut routed = self.routed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*routed
            && last.key == key
            && last.value == value
        {
            return Some(last.header.clone());
        }
        let header = routing(key, value)?;
        *routed = Some(Routed {
            key,
            value: value.to_owned(),
            header: header.clone(),
        });
        Some(header)
    }
}

fn routing(key: &str, value: &str) -> Option<HeaderValue> {
    // An encoded slash has three bytes, and a name of a resource has up to seven of them.
    let mut text = String::with_capacity(key.len() + value.len() + 20);
    text.push_str(key);
    text.push('=');
    text.extend(utf8_percent_encode(value, ROUTING));
    text.try_into().ok()
}

/// In milliseconds, the steps in which times are told, from a second on. What a call waits before it is
/// sent differs each time by a little, and a header that was sent before is one byte.
const STEP: u64 = 100;
const STEPS_FROM: Duration = Duration::from_secs(1);

/// The milliseconds that a call is told to have. Up to a tenth of a second too many: it is our own
/// clock that ends a call, and the server only is not to work on long after.
fn told(left: Duration) -> u64 {
    let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    if left < STEPS_FROM {
        return millis.max(1);
    }
    millis.div_ceil(STEP).saturating_mul(STEP)
}

/// A time in the form of `grpc-timeout`: at most eight digits and a unit.
fn timeout(millis: u64) -> HeaderValue {
    if millis < 100_000_000 {
        HeaderValue::try_from(format!("{millis}m"))
    } else {
        HeaderValue::try_from(format!("{}S", (millis / 1000).min(99_999_999)))
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
            (Duration::from_millis(999), "999m"),
            (Duration::from_millis(1_500), "1500m"),
            (Duration::from_millis(99_999_900), "99999900m"),
            (Duration::from_millis(99_999_999), "100000S"),
            (Duration::from_secs(100_000), "100000S"),
            (Duration::MAX, "99999999S"),
        ];
        for (left, text) in cases {
            assert_eq!(timeout(told(left)), text);
        }
    }

    #[test]
    fn times_that_differ_by_the_wait_before_a_call_are_told_alike() {
        for micros in [29_901_000, 29_950_000, 29_999_999, 30_000_000] {
            assert_eq!(told(Duration::from_micros(micros)), 30_000);
        }
        assert_eq!(told(Duration::from_micros(29_900_000)), 29_900);
    }

    fn head() -> Head {
        let authority = Authority::from_static("pubsub.googleapis.com");
        Head::new(Scheme::HTTPS, authority, "").unwrap()
    }

    #[test]
    fn a_kept_routing_value_is_only_used_for_what_it_was_made_of() {
        let head = head();
        for _ in 0..2 {
            for (key, value, header) in [
                ("topic", "t/1", "topic=t%2F1"),
                ("topic", "t/1", "topic=t%2F1"),
                ("topic", "t/2", "topic=t%2F2"),
                ("parent", "t/2", "parent=t%2F2"),
            ] {
                assert_eq!(head.routing(key, value).unwrap(), header);
            }
        }
    }

    #[test]
    fn a_request_has_its_own_target_routing_and_time_and_no_other_requests() {
        let head = head();
        let routing = head.routing("topic", "t");
        let left = Some(Duration::from_secs(5));
        let request = head.request("/a.B/C", routing, left, ()).unwrap();
        assert_eq!(request.uri().path(), "/a.B/C");
        assert_eq!(request.headers()["x-goog-request-params"], "topic=t");
        assert_eq!(request.headers()["grpc-timeout"], "5000m");
        let routing = head.routing("topic", "t");
        let left = Some(Duration::from_secs(4));
        let request = head.request("/a.B/C", routing, left, ()).unwrap();
        assert_eq!(request.headers()["grpc-timeout"], "4000m");
        let routing = head.routing("topic", "u");
        let request = head.request("/a.B/C", routing, left, ()).unwrap();
        assert_eq!(request.headers()["x-goog-request-params"], "topic=u");
        let request = head.request("/a.B/D", None, None, ()).unwrap();
        assert_eq!(request.uri().path(), "/a.B/D");
        assert!(!request.headers().contains_key("x-goog-request-params"));
        assert!(!request.headers().contains_key("grpc-timeout"));
        let request = head.request("/a.B/C", None, None, ()).unwrap();
        assert_eq!(request.uri().path(), "/a.B/C");
    }

    #[test]
    fn every_request_says_who_sends_it() {
        let authority = Authority::from_static("pubsub.googleapis.com");
        let head = Head::new(Scheme::HTTPS, authority.clone(), "pubsub-sink/1.2.3").unwrap();
        let request = head.request("/a.B/C", None, None, ()).unwrap();
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
