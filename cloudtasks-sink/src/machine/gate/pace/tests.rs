//! Laws of the pace of one queue.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{Pace, Pacing, Ramp, capacity};
use crate::driver::clock;

const SPAN: Duration = Duration::from_secs(10);

fn ramp(first: f64, growth: f64) -> Pacing {
    Pacing {
        ramp: Some(Ramp::new(first, growth, SPAN)),
        rate: None,
    }
}

fn limit(rate: f64) -> Pacing {
    Pacing {
        ramp: None,
        rate: Some(rate),
    }
}

/// Lets everything out that may leave until `end`; answers when each task left.
fn drain(pace: &mut Pace, mut now: Instant, end: Instant) -> Vec<Instant> {
    let mut left = Vec::new();
    loop {
        let due = pace.due(now);
        if due > end {
            return left;
        }
        now = due;
        if pace.due(now) == now {
            pace.take(now);
            left.push(now);
        }
    }
}

#[test]
fn a_limit_of_ten_lets_ten_a_second_out() {
    let start = clock::now();
    let mut pace = Pace::new(limit(10.0), start);
    let left = drain(&mut pace, start, start + Duration::from_secs(60));
    assert!((600..=601).contains(&left.len()), "{}", left.len());
}

#[test]
fn a_ramp_grows_by_half_in_each_span_of_full_traffic_and_no_faster() {
    let start = clock::now();
    let mut pace = Pace::new(ramp(20.0, 1.5), start);
    let mut counts = Vec::new();
    let mut now = start;
    for _ in 0..5 {
        counts.push(drain(&mut pace, now, now + SPAN).len());
        now += SPAN;
    }
    for (count, expected) in counts.iter().zip([200, 300, 450, 675, 1012]) {
        assert!(count.abs_diff(expected) <= 12, "{counts:?}");
    }
}

#[test]
fn a_span_without_an_end_still_lets_out_what_its_rate_allows() {
    let start = clock::now();
    let pacing = Pacing {
        ramp: Some(Ramp::new(10.0, 1.5, Duration::MAX)),
        rate: None,
    };
    let mut pace = Pace::new(pacing, start);
    let left = drain(&mut pace, start, start + Duration::from_secs(60));
    assert!((600..=601).contains(&left.len()), "{}", left.len());
}

#[test]
fn silence_takes_the_ramp_back_to_its_beginning() {
    let start = clock::now();
    let mut pace = Pace::new(ramp(20.0, 1.5), start);
    let mut now = start;
    for _ in 0..6 {
        drain(&mut pace, now, now + SPAN);
        now += SPAN;
    }
    assert!(!pace.is_fresh(now));
    now += Duration::from_secs(3600);
    assert!(pace.is_fresh(now), "nothing is left of the traffic");
    let count = drain(&mut pace, now, now + SPAN).len();
    assert!(count.abs_diff(200) <= 3, "{count}");
}

#[test]
fn a_limit_holds_whatever_the_ramp_allows() {
    let start = clock::now();
    let pacing = Pacing {
        rate: Some(25.0),
        ..ramp(20.0, 1.5)
    };
    let mut pace = Pace::new(pacing, start);
    let end = start + SPAN * 6;
    let later: Vec<Instant> = drain(&mut pace, start, end)
        .into_iter()
        .filter(|left| *left >= end - SPAN)
        .collect();
    assert!((249..=252).contains(&later.len()), "{}", later.len());
}

#[test]
fn googles_ramp_is_500_a_second_and_half_as_many_again_every_five_minutes() {
    let expected = Ramp::new(500.0, 1.5, Duration::from_secs(300));
    assert_eq!(Ramp::google(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_stretch_of_time_has_more_tasks_than_its_rate_allows(
        rate in 0.01f64..300.0,
        pauses in proptest::collection::vec((0u64..30_000, 1u64..2_000), 1..8),
    ) {
        let start = clock::now();
        let mut pace = Pace::new(limit(rate), start);
        let (mut now, mut left) = (start, Vec::new());
        for (silence, traffic) in pauses {
            now += Duration::from_millis(silence);
            let end = now + Duration::from_millis(traffic);
            left.extend(drain(&mut pace, now, end));
            now = end;
        }
        for from in (0..left.len()).step_by(7) {
            for to in (from..left.len()).step_by(13) {
                let span = (left[to] - left[from]).as_secs_f64();
                let allowed = rate.mul_add(span, capacity(rate));
                let count = u32::try_from(to - from + 1).unwrap();
                prop_assert!(f64::from(count) <= allowed + 1.0, "{count} in {span} s");
            }
        }
    }

    #[test]
    fn no_span_has_more_than_the_growth_of_the_span_before(
        first in 1.0f64..40.0,
        growth in 1.0f64..3.0,
        spans in proptest::collection::vec(0u32..=10, 1..12),
    ) {
        let start = clock::now();
        let mut pace = Pace::new(ramp(first, growth), start);
        let mut before = 0.0f64;
        for (index, share) in (0u32..).zip(spans) {
            let begin = start + SPAN * index;
            // The last instant of a span is the first of the next one.
            let end = begin + SPAN * share / 10 - Duration::from_nanos(u64::from(share == 10));
            let count = drain(&mut pace, begin, end).len() as f64;
            let rate = (before * growth / SPAN.as_secs_f64()).max(first);
            let allowed = rate.mul_add(SPAN.as_secs_f64(), capacity(rate));
            prop_assert!(count <= allowed + 1.0, "{count} of {allowed} in span {index}");
            before = count;
        }
    }

    #[test]
    fn a_task_that_waits_for_its_time_leaves_then(rate in 0.001f64..5_000.0, taken in 1usize..500) {
        let start = clock::now();
        let mut pace = Pace::new(limit(rate), start);
        let mut now = start;
        for _ in 0..taken {
            let mut asked = 0;
            while pace.due(now) > now {
                now = pace.due(now);
                asked += 1;
                prop_assert!(asked < 4, "it is due again and again");
            }
            pace.take(now);
        }
    }
}
