//! Queues, byte by byte.

use prost_types::Timestamp;

use super::*;

#[test]
fn the_http_target_of_a_queue_is_its_field_ten() {
    let target = HttpTarget {
        uri_override: Some(UriOverride {
            scheme: Some(uri_override::Scheme::Https.into()),
            host: Some("h".into()),
            port: Some(8),
            path_override: Some(PathOverride { path: "/p".into() }),
            query_override: Some(QueryOverride {
                query_params: "q".into(),
            }),
            uri_override_enforce_mode: uri_override::UriOverrideEnforceMode::Always.into(),
        }),
        http_method: HttpMethod::Patch.into(),
        header_overrides: vec![http_target::HeaderOverride {
            header: Some(http_target::Header {
                key: "k".into(),
                value: "v".into(),
            }),
        }],
        authorization_header: Some(http_target::AuthorizationHeader::OauthToken(OAuthToken {
            service_account_email: "e".into(),
            scope: "s".into(),
        })),
    };
    let uri = [
        number(1, 2),
        field(2, b"h"),
        number(3, 8),
        field(4, &field(1, b"/p")),
        field(5, &field(1, b"q")),
        number(6, 2),
    ];
    let bytes = [
        field(1, &uri.concat()),
        number(2, 6),
        field(3, &field(1, &entry(b"k", b"v"))),
        field(5, &[field(1, b"e"), field(2, b"s")].concat()),
    ];
    assert_bytes(&target, &bytes);
    let queue = Queue {
        name: "q".into(),
        state: queue::State::Paused.into(),
        purge_time: Some(Timestamp {
            seconds: 1,
            nanos: 0,
        }),
        http_target: Some(target),
        ..Queue::default()
    };
    assert_bytes(
        &queue,
        &[
            field(1, b"q"),
            number(5, 2),
            field(6, &number(1, 1)),
            field(10, &bytes.concat()),
        ],
    );
}

#[test]
fn the_limits_of_a_queue_have_their_numbers() {
    let queue = Queue {
        app_engine_routing_override: Some(AppEngineRouting {
            service: "s".into(),
            ..AppEngineRouting::default()
        }),
        rate_limits: Some(RateLimits {
            max_dispatches_per_second: 0.5,
            max_burst_size: 2,
            max_concurrent_dispatches: 3,
        }),
        retry_config: Some(RetryConfig {
            max_attempts: -1,
            ..RetryConfig::default()
        }),
        stackdriver_logging_config: Some(StackdriverLoggingConfig {
            sampling_ratio: 1.0,
        }),
        ..Queue::default()
    };
    let double = |value: f64| [vec![1 << 3 | 1], value.to_le_bytes().to_vec()].concat();
    assert_bytes(
        &queue,
        &[
            field(2, &field(1, b"s")),
            field(3, &[double(0.5), number(2, 2), number(3, 3)].concat()),
            field(4, &number(1, u64::MAX)),
            field(9, &double(1.0)),
        ],
    );
}
