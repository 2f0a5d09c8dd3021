//! How often and how late a task is tried again, and where it is meanwhile.

use std::time::Duration;

use gcp_wire::Code;

use super::super::*;
use super::script::{Script, created, failed};
use crate::naming::Named;

/// The delays of one record that meets `code` each time, with one jitter number throughout.
fn delays(code: Code, random: f64) -> Vec<Duration> {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByService);
    let mut delays = Vec::new();
    loop {
        assert_eq!(script.sent(), [record]);
        let answered = script.now;
        script
            .machine
            .handle_answer(answered, record, failed(code), random);
        if script.ended() {
            return delays;
        }
        let due = script.machine.parking.next_due().unwrap();
        delays.push(due - answered);
        script.advance(due - answered);
    }
}

#[test]
fn delays_double_and_stray_by_a_quarter_at_most() {
    for (code, expected) in [
        (
            Code::Unavailable,
            &[100, 200, 400, 800, 1_600, 3_200, 6_400][..],
        ),
        (Code::NotFound, &[500, 1_000][..]),
    ] {
        let base: Vec<Duration> = expected
            .iter()
            .map(|millis| Duration::from_millis(*millis))
            .collect();
        assert_eq!(delays(code, 0.5), base, "{code}");
        let (shortest, longest) = (delays(code, 0.0), delays(code, 1.0));
        for ((base, shortest), longest) in base.iter().zip(shortest).zip(longest) {
            assert_eq!(shortest, base.mul_f64(0.75), "{code}");
            assert!(longest <= base.mul_f64(1.25), "{code}");
            assert!(longest > base.mul_f64(1.24), "{code}");
        }
    }
}

#[test]
fn a_record_whose_failures_alternate_is_sent_ten_times_at_most() {
    let mut most = 0;
    for pattern in 0u32..1 << 10 {
        let mut script = Script::new();
        let record = script.accept("a", Named::ByService);
        let mut sends = 0;
        for bit in 0..32 {
            if script.ended_silently() {
                break;
            }
            sends += script.sent().len();
            let code = if pattern >> (bit % 10) & 1 == 0 {
                Code::Unavailable
            } else {
                Code::NotFound
            };
            script.answer(record, failed(code));
            script.advance(Duration::from_secs(13));
        }
        assert!(script.ended_silently(), "{pattern:b} goes on for ever");
        most = most.max(sends);
    }
    assert_eq!(most, 10, "seven and two retries, and the first attempt");
}

#[test]
fn a_task_is_in_flight_or_parked_and_then_gone() {
    let mut script = Script::new();
    let record = script.accept("a", Named::ByService);
    let places = |script: &Script| {
        let stats = script.stats();
        (stats.in_flight, stats.parked, stats.pending)
    };
    assert_eq!(script.sent(), [record]);
    assert_eq!(places(&script), (1, 0, 1));
    script.answer(record, failed(Code::Unavailable));
    assert_eq!(places(&script), (0, 1, 1));
    script.advance(Duration::from_millis(100));
    assert_eq!(script.sent(), [record]);
    assert_eq!(places(&script), (1, 0, 1));
    script.answer(record, created("n"));
    assert_eq!(places(&script), (0, 0, 0));
}

#[test]
fn an_answer_after_the_end_reaches_nobody_and_its_record_stays_owed() {
    let mut script = Script::new();
    let first = script.accept("a", Named::ByService);
    let second = script.accept("b", Named::ByService);
    script.snapshot(1).unwrap();
    assert_eq!(script.sent(), [first, second]);
    script.answer(first, failed(Code::PermissionDenied));
    script.answer(second, failed(Code::InvalidArgument));
    assert!(matches!(
        script.error(),
        SinkError::Refused { pending: 2, .. }
    ));
    assert!(script.handled().is_empty(), "no handler hears of it");
    assert_eq!(script.snapshots(), [], "and no snapshot covers it");
    assert_eq!(script.stats().rejected, 0);
}
