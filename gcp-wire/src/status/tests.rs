use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use prost::Message as _;

use super::*;
use crate::proto::rpc::{ErrorInfo, RetryInfo, Status};
use crate::proto::{Any, Duration};

fn encoded(details: Vec<Any>) -> Vec<u8> {
    Status {
        code: 9,
        message: "m".into(),
        details,
    }
    .encode_to_vec()
}

fn error_info(metadata: impl IntoIterator<Item = (String, String)>) -> Any {
    let info = ErrorInfo {
        metadata: metadata.into_iter().collect(),
        ..ErrorInfo::default()
    };
    Any {
        type_url: ErrorInfo::TYPE_URL.into(),
        value: info.encode_to_vec(),
    }
}

#[test]
fn codes_keep_their_numbers_and_unknown_ones_are_unknown() {
    for number in 0..=16 {
        assert_eq!(Code::from_number(number).number(), number);
    }
    for number in [-1, 17, i32::MAX, i32::MIN] {
        assert_eq!(Code::from_number(number), Code::Unknown);
    }
    assert_eq!(Code::from_number(4).to_string(), "DEADLINE_EXCEEDED");
}

#[test]
fn every_code_has_the_fault_of_the_retry_table() {
    let table = [
        (Fault::Fatal, &[0, 12, 15][..]),
        (Fault::Transient, &[1, 2, 4, 8, 10, 13, 14]),
        (Fault::Rejected, &[3, 11]),
        (Fault::Missing, &[5]),
        (Fault::Conflict, &[6, 9]),
        (Fault::Denied, &[7, 16]),
    ];
    for (fault, codes) in table {
        for code in codes {
            assert_eq!(Code::from_number(*code).fault(), fault, "{code}");
        }
    }
}

#[test]
fn per_id_verdicts_are_read_by_the_prefix_of_their_reason() {
    let any = error_info([
        ("a".into(), "PERMANENT_FAILURE_INVALID_ACK_ID".into()),
        ("b".into(), "TRANSIENT_FAILURE_UNORDERED_ACK_ID".into()),
        ("service".into(), "pubsub.googleapis.com".into()),
    ]);
    let delay = Some(Duration {
        seconds: 1,
        nanos: 500_000_000,
    });
    let retry = Any {
        type_url: RetryInfo::TYPE_URL.into(),
        value: RetryInfo { retry_delay: delay }.encode_to_vec(),
    };
    let bytes = encoded(vec![any, retry]);
    for text in [
        BASE64_STANDARD.encode(&bytes),
        BASE64_STANDARD_NO_PAD.encode(&bytes),
    ] {
        let details = Details::from_header(text.as_bytes()).unwrap();
        assert_eq!(
            details.retry_after,
            Some(std::time::Duration::from_millis(1_500))
        );
        assert_eq!(
            Vec::from_iter(details.acks),
            [
                (
                    "a".into(),
                    AckFailure::Permanent("PERMANENT_FAILURE_INVALID_ACK_ID".into())
                ),
                (
                    "b".into(),
                    AckFailure::Transient("TRANSIENT_FAILURE_UNORDERED_ACK_ID".into())
                ),
            ]
        );
    }
}

#[test]
fn unreadable_details_are_an_error_and_never_a_panic() {
    let broken_info = Any {
        type_url: ErrorInfo::TYPE_URL.into(),
        value: vec![0xff],
    };
    let cases = [
        b"%%%".to_vec(),
        b"====".to_vec(),
        b"/w==".to_vec(),
        BASE64_STANDARD
            .encode(encoded(vec![broken_info]))
            .into_bytes(),
    ];
    for case in cases {
        assert!(Details::from_header(&case).is_err(), "{case:?}");
    }
    assert_eq!(Details::from_header(b"").unwrap(), Details::default());
}

#[test]
fn a_refused_stream_had_no_effect_only_before_the_answer_began() {
    for fault in [TransportFault::Refused, TransportFault::GoneAway] {
        let error = RpcError::new("Publish", Cause::Transport(fault));
        assert!(error.never_sent() && !error.is_ambiguous());
        let error = error.after_answer_began();
        assert!(!error.never_sent() && error.is_ambiguous() && error.is_transport());
    }
    let broken = RpcError::new("Publish", Cause::Transport(TransportFault::Broken));
    assert!(!broken.never_sent() && broken.is_ambiguous());
}

#[test]
fn time_that_ran_out_before_the_send_leaves_no_doubt() {
    let after = std::time::Duration::from_secs(5);
    for phase in [Phase::Turn, Phase::Credentials, Phase::Connection] {
        let error = RpcError::new("CreateTask", Cause::Timeout { after, phase });
        assert!(error.never_sent() && error.is_timeout(), "{phase:?}");
        assert_eq!(error.fault(), Fault::Transient);
    }
    let error = RpcError::new(
        "CreateTask",
        Cause::Timeout {
            after,
            phase: Phase::Answer,
        },
    );
    assert!(error.is_ambiguous() && !error.never_sent());
    assert_eq!(
        error.to_string(),
        "CreateTask failed: no result within 5s, waiting for the answer; the request may have \
         taken effect"
    );
}

#[test]
fn a_long_message_is_cut_and_stripped_of_control_characters() {
    let error = RpcError::status(
        "Publish",
        Code::NotFound,
        &format!("a\nb{}", "x".repeat(5_000)),
    );
    assert!(error.message().starts_with("a bx") && error.message().ends_with('…'));
    assert!(error.to_string().len() < 1_200);
}

#[test]
fn a_status_without_h2_in_its_chain_is_a_broken_connection() {
    let error = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    assert_eq!(TransportFault::of(&error), TransportFault::Broken);
    assert!(!is_enhance_your_calm(&error));
    // An h2 error of our own side, not of the server: nothing is proven by it.
    let local = h2::Error::from(h2::Reason::REFUSED_STREAM);
    assert_eq!(TransportFault::of(&local), TransportFault::Broken);
}
