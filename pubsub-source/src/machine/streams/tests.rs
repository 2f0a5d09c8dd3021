//! Streams, one behaviour at a time.

use super::*;

const LEASE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn started(now: Instant, slots: usize, bound: usize) -> Streams {
    let settings = Settings {
        streams: slots,
        outstanding: bound,
        ..Settings::default()
    };
    let mut streams = Streams::new(now, &settings);
    assert!(streams.start());
    streams
}

fn opened(streams: &mut Streams) -> Vec<(StreamId, u64)> {
    let mut opened = Vec::new();
    while let Some(effect) = streams.poll_effect() {
        if let Effect::Open {
            stream,
            max_messages,
            ..
        } = effect
        {
            opened.push((stream, max_messages));
        }
    }
    opened
}

#[test]
fn the_limit_is_divided_over_the_streams() {
    let now = crate::driver::now();
    let mut streams = started(now, 4, 100);
    streams.advance(now, 100, LEASE);
    let told: Vec<u64> = opened(&mut streams).iter().map(|(_, told)| *told).collect();
    assert_eq!(told, [25; 4]);
    streams.check_invariants();

    let mut streams = started(now, 3, 1000);
    streams.advance(now, 1000, LEASE);
    let told: Vec<u64> = opened(&mut streams).iter().map(|(_, told)| *told).collect();
    assert_eq!(told, [334, 333, 333]);
}

#[test]
fn a_stream_that_delivered_opens_again_at_once_and_one_that_did_not_waits_longer_each_time() {
    let mut now = crate::driver::now();
    let mut streams = started(now, 1, 100);
    streams.advance(now, 100, LEASE);
    let (first, _) = opened(&mut streams)[0];
    streams.handle_response(now, first, 3);
    streams.handle_end(now, 1.0, first, StreamEnd::Again);
    streams.advance(now, 100, LEASE);
    let (mut stream, _) = opened(&mut streams)[0];
    let mut last = Duration::ZERO;
    for _ in 0..7 {
        streams.handle_end(now, 1.0, stream, StreamEnd::Again);
        streams.advance(now, 100, LEASE);
        assert!(opened(&mut streams).is_empty(), "not at once");
        let at = streams.next_timeout(100).unwrap();
        assert!(at - now > last);
        last = at - now;
        now = at;
        streams.advance(now, 100, LEASE);
        stream = opened(&mut streams)[0].0;
    }
    assert!(last <= Duration::from_secs(10));
}

#[test]
fn the_watchdog_is_armed_by_the_first_answered_ping() {
    let start = crate::driver::now();
    let mut streams = started(start, 1, 100);
    streams.advance(start, 100, LEASE);
    let (stream, _) = opened(&mut streams)[0];
    streams.handle_opened(start, stream);
    for minute in 1..=4 {
        streams.advance(start + SECOND * 60 * minute, 100, LEASE);
    }
    assert!(
        opened(&mut streams).is_empty(),
        "a server that never answers is left alone for a while"
    );

    let answered = start + SECOND * 241;
    streams.handle_response(answered, stream, 0);
    streams.advance(answered + SILENCE - SECOND, 100, LEASE);
    assert!(opened(&mut streams).is_empty());
    streams.advance(answered + SILENCE, 100, LEASE);
    assert!(opened(&mut streams).is_empty(), "its end is awaited");
    streams.handle_end(answered + SILENCE, 0.0, stream, StreamEnd::Again);
    streams.advance(answered + SILENCE, 100, LEASE);
    assert_eq!(opened(&mut streams).len(), 1);
}

#[test]
fn a_stream_without_any_answer_is_half_closed_and_followed_by_another() {
    let start = crate::driver::now();
    let mut streams = started(start, 1, 100);
    streams.advance(start, 50, LEASE);
    let (stream, _) = opened(&mut streams)[0];
    streams.advance(start + UNANSWERED - SECOND, 50, LEASE);
    assert!(opened(&mut streams).is_empty());
    assert!(streams.next_timeout(50) <= Some(start + UNANSWERED));
    streams.advance(start + UNANSWERED, 50, LEASE);
    let effects: Vec<Effect> = std::iter::from_fn(|| streams.poll_effect()).collect();
    let half_closed =
        |effect: &Effect| matches!(effect, Effect::HalfClose { stream: old } if *old == stream);
    assert!(effects.iter().any(half_closed), "{effects:?}");
    let is_open = |effect: &&Effect| matches!(effect, Effect::Open { .. });
    assert_eq!(effects.iter().filter(is_open).count(), 1);
    assert_eq!(streams.count(), 2, "what it may still deliver is read");
}

#[test]
fn a_missing_answer_counts_for_nothing_while_nobody_reads() {
    let start = crate::driver::now();
    let mut streams = started(start, 1, 100);
    streams.advance(start, 100, LEASE);
    assert_eq!(opened(&mut streams).len(), 1);
    streams.set_reading(start + SECOND, false);
    streams.advance(start + UNANSWERED * 2, 100, LEASE);
    assert!(opened(&mut streams).is_empty());
    streams.set_reading(start + UNANSWERED * 2, true);
    streams.advance(start + UNANSWERED * 3 - SECOND, 100, LEASE);
    assert!(opened(&mut streams).is_empty());
    streams.advance(start + UNANSWERED * 3, 100, LEASE);
    assert_eq!(
        streams.count(),
        1,
        "its successor waits: the bound is told already"
    );
    streams.advance(start + UNANSWERED * 3 + FAREWELL, 100, LEASE);
    assert_eq!(opened(&mut streams).len(), 1);
}

#[test]
fn a_stream_that_fell_silent_before_any_ping_was_answered_has_a_successor() {
    let start = crate::driver::now();
    let mut streams = started(start, 1, 100);
    streams.advance(start, 50, LEASE);
    let (stream, _) = opened(&mut streams)[0];
    streams.handle_response(start + SECOND, stream, 1);
    streams.advance(start + QUIET, 50, LEASE);
    assert!(opened(&mut streams).is_empty());
    assert!(streams.next_timeout(50) <= Some(start + SECOND + QUIET));
    streams.advance(start + SECOND + QUIET, 50, LEASE);
    assert_eq!(opened(&mut streams).len(), 1);
    assert_eq!(streams.count(), 2, "what it may still deliver is read");
}

#[test]
fn silence_does_not_count_while_nobody_reads() {
    let start = crate::driver::now();
    let mut streams = started(start, 1, 100);
    streams.advance(start, 100, LEASE);
    let (stream, _) = opened(&mut streams)[0];
    streams.advance(start + PING, 100, LEASE);
    streams.handle_response(start + PING, stream, 0);
    streams.set_reading(start + PING, false);
    let later = start + SECOND * 600;
    streams.advance(later, 100, LEASE);
    streams.set_reading(later, true);
    streams.advance(later, 100, LEASE);
    assert!(opened(&mut streams).is_empty());
}

#[test]
fn a_larger_limit_opens_a_successor_beside_the_stream_within_the_bound() {
    let now = crate::driver::now();
    let mut streams = started(now, 1, 10_000);
    streams.advance(now, 1000, LEASE);
    let (first, _) = opened(&mut streams)[0];
    streams.retell(now, 4000, LEASE);
    assert_eq!(opened(&mut streams)[0].1, 4000);
    streams.check_invariants();

    // 4,000 and 10,000 together pass the bound: one after the other.
    streams.handle_end(now, 0.0, first, StreamEnd::Again);
    streams.retell(now, 10_000, LEASE);
    assert!(opened(&mut streams).is_empty());
    let second = StreamId(1);
    streams.handle_end(now, 0.0, second, StreamEnd::Again);
    streams.advance(now, 10_000, LEASE);
    assert_eq!(opened(&mut streams)[0].1, 10_000);
    streams.check_invariants();
}

#[test]
fn a_half_closed_stream_that_does_not_end_is_dropped() {
    let now = crate::driver::now();
    let mut streams = started(now, 1, 10_000);
    streams.advance(now, 1000, LEASE);
    streams.retell(now, 4000, LEASE);
    assert_eq!(streams.count(), 2);
    streams.advance(now + FAREWELL, 4000, LEASE);
    assert_eq!(streams.count(), 1);
}

#[test]
fn around_a_change_of_the_lease_the_shorter_one_counts() {
    let now = crate::driver::now();
    let mut streams = started(now, 1, 100);
    streams.advance(now, 100, SECOND * 20);
    let (stream, _) = opened(&mut streams)[0];
    streams.change_lease(now, SECOND * 30);
    assert_eq!(streams.lease(now, stream), Some(SECOND * 20));
    assert_eq!(streams.lease(now + CHANGE, stream), Some(SECOND * 30));
    streams.change_lease(now + CHANGE, SECOND * 10);
    assert_eq!(streams.lease(now + CHANGE, stream), Some(SECOND * 10));
}

#[test]
fn a_limit_in_bytes_is_divided_too_and_never_told_twice() {
    let now = crate::driver::now();
    let settings = Settings {
        streams: 2,
        outstanding: 1000,
        outstanding_bytes: Some(1001),
        ..Settings::default()
    };
    let mut streams = Streams::new(now, &settings);
    streams.start();
    streams.advance(now, 10, LEASE);
    let mut told = Vec::new();
    let mut first = Vec::new();
    while let Some(effect) = streams.poll_effect() {
        if let Effect::Open {
            stream, max_bytes, ..
        } = effect
        {
            first.push(stream);
            told.push(max_bytes);
        }
    }
    assert_eq!(told, [501, 500]);
    streams.check_invariants();

    // More messages are told: beside the old streams there is no room for theirs.
    streams.retell(now, 40, LEASE);
    assert!(opened(&mut streams).is_empty());
    for stream in first {
        streams.handle_end(now, 0.0, stream, StreamEnd::Again);
        streams.advance(now, 40, LEASE);
        streams.check_invariants();
    }
    assert_eq!(opened(&mut streams).len(), 2);
}

#[test]
fn where_order_is_kept_a_stream_opens_only_after_the_one_before_has_ended() {
    let now = crate::driver::now();
    let settings = Settings {
        message_ordering: true,
        ..Settings::default()
    };
    let mut streams = Streams::new(now, &settings);
    assert!(streams.start());
    streams.advance(now, 100, LEASE);
    let (first, _) = opened(&mut streams)[0];
    streams.retell(now, 400, LEASE);
    streams.advance(now, 400, LEASE);
    assert_eq!(opened(&mut streams), []);
    assert!(
        streams.next_timeout(400) > Some(now),
        "it waits for the end"
    );
    assert!(!streams.handle_end(now, 0.0, first, StreamEnd::Again));
    assert_eq!(streams.next_timeout(400), Some(now));
    streams.advance(now, 400, LEASE);
    assert_eq!(opened(&mut streams).len(), 1);
}
