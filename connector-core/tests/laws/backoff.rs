//! Backoff schedules stay within their bounds, whatever they are given.

use std::time::Duration;

use connector_core::backoff::Backoff;
use proptest::prelude::*;

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        8 => (0u64..100_000_000).prop_map(Duration::from_micros),
        1 => Just(Duration::ZERO),
        1 => Just(Duration::MAX),
    ]
}

fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 0.0..4.0f64,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => -5.0..0.0f64,
    ]
}

proptest! {
    #[test]
    fn delays_grow_to_the_cap_and_never_beyond(
        first in durations(),
        factor in numbers(),
        cap in durations(),
        attempt in prop_oneof![0u32..100, Just(u32::MAX)],
    ) {
        let backoff = Backoff::new(first, factor, cap);
        let delay = backoff.delay(attempt);
        prop_assert!(delay <= cap);
        prop_assert!(delay >= first.min(cap) || delay == cap);
        prop_assert!(backoff.delay(attempt.saturating_add(1)) >= delay);
    }

    #[test]
    fn jitter_strays_by_a_quarter_and_no_more(
        first in (1u64..100_000_000).prop_map(Duration::from_micros),
        attempt in 1u32..100,
        random in numbers(),
    ) {
        let backoff = Backoff::new(first, 1.3, Duration::from_secs(60));
        let delay = backoff.delay(attempt).as_secs_f64();
        let jittered = backoff.jittered(attempt, random).as_secs_f64();
        let rounding = 2e-9;
        prop_assert!(jittered >= delay * 0.75 - rounding && jittered <= delay * 1.25 + rounding);
        prop_assert!(backoff.full_jitter(attempt, random) <= backoff.delay(attempt) + Duration::from_nanos(2));
    }

    #[test]
    fn no_setting_and_no_random_number_makes_a_schedule_panic(
        first in durations(),
        factor in numbers(),
        cap in durations(),
        attempt in any::<u32>(),
        random in numbers(),
    ) {
        let backoff = Backoff::new(first, factor, cap);
        let jittered = backoff.jittered(attempt, random);
        prop_assert!(jittered >= backoff.delay(attempt) / 2);
        prop_assert!(backoff.full_jitter(attempt, 0.0) == Duration::ZERO);
    }
}

#[test]
fn the_first_failure_waits_for_the_first_delay() {
    let backoff = Backoff::new(Duration::from_millis(100), 2.0, Duration::from_secs(1));
    let delays: Vec<u128> = (1..=6)
        .map(|attempt| backoff.delay(attempt).as_millis())
        .collect();
    assert_eq!(delays, [100, 200, 400, 800, 1000, 1000]);
    assert_eq!(backoff.delay(0), backoff.delay(1));
    assert_eq!(backoff.jittered(1, 0.0), Duration::from_millis(75));
    assert_eq!(backoff.jittered(1, 1.0), Duration::from_millis(125));
    assert_eq!(backoff.full_jitter(1, 1.0), Duration::from_millis(100));
}

#[test]
fn a_schedule_that_shrinks_or_starts_above_its_cap_is_not_consistent() {
    let (short, long) = (Duration::from_millis(100), Duration::from_secs(1));
    for (first, factor, cap, consistent) in [
        (short, 2.0, long, true),
        (short, 1.0, short, true),
        (long, 2.0, short, false),
        (short, 0.9, long, false),
        (short, f64::NAN, long, false),
    ] {
        let backoff = Backoff::new(first, factor, cap);
        assert_eq!(backoff.is_consistent(), consistent, "{backoff:?}");
    }
}
