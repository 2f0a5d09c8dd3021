//! Positions in a trace, and their text.

use connector_core::trace::{TraceContext, TraceContextError};
use proptest::prelude::*;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn parse(text: &str) -> Result<TraceContext, TraceContextError> {
    text.parse()
}

#[test]
fn a_malformed_traceparent_is_none() {
    for text in [
        String::new(),
        "00".to_owned(),
        format!("00-{TRACE}-{SPAN}"),
        format!("00-{TRACE}-{SPAN}-1"),
        format!("00-{TRACE}-{SPAN}-01-"),
        format!("00-{TRACE}-{SPAN}-01-more"),
        format!("00-{TRACE}0-{SPAN}-01"),
        format!("00-{TRACE}-{SPAN}00-01"),
        format!("0-{TRACE}-{SPAN}-01"),
        format!("ff-{TRACE}-{SPAN}-01"),
        format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
        format!("00-{TRACE}-{SPAN}-0x"),
        format!(" 00-{TRACE}-{SPAN}-01"),
        format!("00-{TRACE}-{SPAN}-01\n"),
        format!("00_{TRACE}_{SPAN}_01"),
        format!("00-{TRACE}-00f067aa0ba902ü-01"),
    ] {
        assert_eq!(parse(&text), Err(TraceContextError::Format), "{text:?}");
    }
    for text in [
        format!("00-{}-{SPAN}-01", "0".repeat(32)),
        format!("00-{TRACE}-{}-01", "0".repeat(16)),
    ] {
        assert_eq!(parse(&text), Err(TraceContextError::Zero), "{text:?}");
    }
}

#[test]
fn of_a_later_version_what_this_one_knows_is_read_and_passed_on() {
    for text in [
        format!("01-{TRACE}-{SPAN}-fd"),
        format!("cc-{TRACE}-{SPAN}-05-what-the-future-holds"),
    ] {
        let context = parse(&text).unwrap();
        assert!(context.is_sampled());
        assert_eq!(context.to_string(), format!("00-{TRACE}-{SPAN}-01"));
    }
}

#[test]
fn a_span_within_the_trace_keeps_the_trace_and_its_flags() {
    let context = parse(&format!("00-{TRACE}-{SPAN}-03")).unwrap();
    let below = context.at([0, 0, 0, 0, 0, 0, 0, 9]).unwrap();
    assert_eq!(below.to_string(), format!("00-{TRACE}-0000000000000009-03"));
    assert_eq!(context.at([0; 8]), Err(TraceContextError::Zero));
}

proptest! {
    #[test]
    fn what_is_written_is_read(trace in any::<[u8; 16]>(), span in any::<[u8; 8]>(), sampled: bool) {
        prop_assume!(trace != [0; 16] && span != [0; 8]);
        let context = TraceContext::new(trace, span, sampled).unwrap();
        prop_assert_eq!((context.trace_id(), context.span_id()), (trace, span));
        prop_assert_eq!(context.is_sampled(), sampled);
        prop_assert_eq!(parse(&context.to_string()), Ok(context));
    }

    #[test]
    fn no_text_makes_it_panic_and_what_is_accepted_is_written_alike(
        text in "([0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.{0,4})?)|\\PC{0,60}"
    ) {
        if let Ok(context) = parse(&text) {
            let written = context.to_string();
            prop_assert_eq!(text.get(3..52), written.get(3..52));
        }
    }
}
