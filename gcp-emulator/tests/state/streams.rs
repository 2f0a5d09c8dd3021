//! Pull streams: limits, leases, requests, ends.

use std::collections::VecDeque;
use std::time::Duration;

use gcp_emulator::Code;
use gcp_emulator::pubsub::proto::StreamingPullRequest;
use gcp_emulator::pubsub::state::{
    LateAcks, OnStreamClose, Refusal, Settings, StreamId, StreamPoll,
};

use crate::world::{SUB, World, text, texts};

fn numbered(world: &mut World, count: usize) {
    let texts: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    world.publish(&texts.iter().map(String::as_str).collect::<Vec<_>>());
}

fn request(change: impl FnOnce(&mut StreamingPullRequest)) -> StreamingPullRequest {
    let mut request = StreamingPullRequest::default();
    change(&mut request);
    request
}

#[test]
fn a_stream_gets_no_more_messages_than_it_may_hold() {
    let mut world = World::new(|_| ());
    numbered(&mut world, 10);
    let stream = world.open_with(|first| first.max_outstanding_messages = 3);
    let got = world.drain(stream);
    assert_eq!(got.len(), 3);
    world.ack(&[&got[0]]).unwrap();
    assert_eq!(texts(&world.drain(stream)), ["3"]);
    world.nack(&[&got[1]]);
    assert_eq!(
        texts(&world.drain(stream)),
        ["1"],
        "a nacked message makes room and comes first"
    );
}

#[test]
fn a_byte_limit_is_overshot_by_one_message_at_most() {
    let mut world = World::new(|_| ());
    world.publish(&["x".repeat(400).as_str(), "y".repeat(400).as_str(), "z"]);
    let stream = world.open_with(|first| first.max_outstanding_bytes = 500);
    assert_eq!(world.drain(stream).len(), 2);
    assert!(world.record().outstanding_bytes > 500);
}

#[test]
fn a_lapsed_lease_makes_room() {
    let mut world = World::new(|_| ());
    numbered(&mut world, 2);
    let stream = world.open_with(|first| first.max_outstanding_messages = 1);
    assert_eq!(texts(&world.drain(stream)), ["0"]);
    world.pass_secs(10);
    assert_eq!(texts(&world.drain(stream)), ["0"]);
    assert_eq!(world.record().lapses, 1);
}

#[test]
fn the_stream_decides_the_lease_of_what_it_delivers_and_the_subscription_of_what_is_pulled() {
    let mut world = World::new(|sub| sub.ack_deadline_seconds = 60);
    numbered(&mut world, 1);
    let stream = world.open();
    assert_eq!(world.drain(stream).len(), 1);
    world.pass(Duration::from_millis(9_999));
    assert_eq!(world.record().lapses, 0);
    world.pass(Duration::from_millis(1));
    assert_eq!(world.record().lapses, 1);
    assert_eq!(world.pull(1).len(), 1);
    world.pass(Duration::from_millis(59_999));
    assert_eq!(world.record().lapses, 1);
    world.pass(Duration::from_millis(1));
    assert_eq!(world.record().lapses, 2);
}

#[test]
fn a_later_request_may_change_the_deadline_of_what_is_delivered_from_then_on() {
    let mut world = World::new(|_| ());
    let stream = world.open();
    let longer = request(|r| r.stream_ack_deadline_seconds = 30);
    world
        .state
        .handle_stream_request(world.now, stream, &longer)
        .unwrap();
    numbered(&mut world, 1);
    world.drain(stream);
    world.pass_secs(29);
    assert_eq!(world.record().lapses, 0);
    world.pass_secs(1);
    assert_eq!(world.record().lapses, 1);
}

#[test]
fn a_redelivery_has_a_new_ack_id_and_only_the_newest_counts() {
    let mut world = World::new(|_| ());
    numbered(&mut world, 1);
    let stream = world.open();
    let first = world.drain(stream).remove(0);
    world.pass_secs(10);
    let second = world.drain(stream).remove(0);
    assert_ne!(first.ack_id, second.ack_id);
    assert_eq!(first.message, second.message);
    world.ack(&[&first]).unwrap();
    assert_eq!((world.record().acks, world.record().ignored), (0, 1));
    world.ack(&[&second]).unwrap();
    assert_eq!((world.record().acks, world.record().backlog), (1, 0));
}

#[test]
fn what_a_late_acknowledgement_does_is_a_setting() {
    for (late, before, after) in [
        (LateAcks::UntilRedelivered, 1, 0),
        (LateAcks::Never, 0, 0),
        (LateAcks::Always, 1, 1),
    ] {
        for (redelivered, expected) in [(false, before), (true, after)] {
            let mut settings = Settings::default();
            settings.late_acks = late;
            let mut world = World::with(settings, |_| ());
            numbered(&mut world, 1);
            let first = world.pull(1).remove(0);
            world.pass_secs(10);
            if redelivered {
                assert_eq!(world.pull(1).len(), 1);
            }
            world.ack(&[&first]).unwrap();
            assert_eq!(
                world.record().acks,
                expected,
                "{late:?}, redelivered: {redelivered}"
            );
        }
    }
}

#[test]
fn an_extension_moves_the_end_and_zero_gives_back() {
    let mut world = World::new(|_| ());
    numbered(&mut world, 2);
    let got = world.pull(2);
    world.pass_secs(5);
    world.modify(&[&got[0]], 30).unwrap();
    world.nack(&[&got[1]]);
    assert_eq!(texts(&world.pull(2)), ["1"]);
    world.pass_secs(29);
    assert_eq!(world.record().lapses, 1, "the nacked one's second lease");
    world.pass_secs(1);
    assert_eq!(world.record().lapses, 2);
    assert_eq!(world.record().extensions, 1);
}

#[test]
fn deadlines_outside_their_range_are_refused() {
    let mut world = World::new(|_| ());
    numbered(&mut world, 1);
    let got = world.pull(1);
    for seconds in [-1, 601] {
        let refused = world.modify(&[&got[0]], seconds).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{seconds}");
    }
    for seconds in [0, 9, 601, 60_000] {
        let first = request(|r| {
            r.subscription = SUB.to_owned();
            r.stream_ack_deadline_seconds = seconds;
        });
        let refused = world.state.open_stream(world.now, &first).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{seconds}");
    }
}

#[test]
fn fields_of_the_first_request_end_the_stream_when_they_come_again() {
    let offences: [fn(&mut StreamingPullRequest); 5] = [
        |r| r.subscription = SUB.to_owned(),
        |r| r.client_id = "me".to_owned(),
        |r| r.max_outstanding_messages = 5,
        |r| r.max_outstanding_bytes = 5,
        |r| r.protocol_version = 1,
    ];
    for (place, offence) in offences.into_iter().enumerate() {
        let mut world = World::new(|_| ());
        let stream = world.open();
        let later = request(offence);
        let refused = world
            .state
            .handle_stream_request(world.now, stream, &later)
            .unwrap_err();
        assert!(matches!(refused, Refusal::OpeningOnly { .. }), "{place}");
        assert_eq!(world.poll(stream), StreamPoll::End(Some(refused)));
    }
}

#[test]
fn a_malformed_ack_id_ends_the_stream_and_nothing_of_its_request_takes_effect() {
    let mut world = World::new(|_| ());
    numbered(&mut world, 1);
    let stream = world.open();
    let got = world.drain(stream);
    let mixed = request(|r| r.ack_ids = vec![got[0].ack_id.clone(), "nonsense".to_owned()]);
    let refused = world
        .state
        .handle_stream_request(world.now, stream, &mixed)
        .unwrap_err();
    assert_eq!(
        refused,
        Refusal::AckId {
            ack_id: "nonsense".to_owned()
        }
    );
    assert_eq!(world.record().acks, 0);
    assert!(matches!(world.poll(stream), StreamPoll::End(Some(_))));
}

#[test]
fn lists_of_different_length_end_the_stream() {
    let mut world = World::new(|_| ());
    let stream = world.open();
    let uneven = request(|r| r.modify_deadline_seconds = vec![10]);
    let refused = world
        .state
        .handle_stream_request(world.now, stream, &uneven)
        .unwrap_err();
    assert_eq!(refused, Refusal::UnequalLists { ids: 0, seconds: 1 });
}

#[test]
fn acks_and_extensions_on_the_stream_do_what_the_unary_calls_do() {
    let mut world = World::new(|_| ());
    numbered(&mut world, 3);
    let stream = world.open();
    let got = world.drain(stream);
    let both = request(|r| {
        r.ack_ids = vec![got[0].ack_id.clone()];
        r.modify_deadline_ack_ids = vec![got[1].ack_id.clone(), got[2].ack_id.clone()];
        r.modify_deadline_seconds = vec![0, 60];
    });
    world
        .state
        .handle_stream_request(world.now, stream, &both)
        .unwrap();
    let record = world.record();
    assert_eq!((record.acks, record.nacks, record.extensions), (1, 1, 1));
    assert_eq!(texts(&world.drain(stream)), ["1"]);
}

#[test]
fn ack_ids_of_another_subscription_are_refused() {
    let mut world = World::new(|_| ());
    let other = "projects/demo/subscriptions/other";
    world
        .subscription(other, crate::world::TOPIC, |_| ())
        .unwrap();
    numbered(&mut world, 1);
    let got = world.state.pull(world.now, other, 1).unwrap();
    let refused = world.ack(&[&got[0]]).unwrap_err();
    assert_eq!(
        refused,
        Refusal::AckId {
            ack_id: got[0].ack_id.clone()
        }
    );
}

#[test]
fn an_acknowledge_request_may_have_half_a_mebibyte() {
    let mut settings = Settings::default();
    settings.ack_id_length = 500;
    let mut world = World::with(settings, |_| ());
    for _ in 0..2 {
        numbered(&mut world, 1000);
    }
    let got: Vec<_> = [world.pull(1000), world.pull(1000)].concat();
    // An id of 500 characters takes 503 bytes; the subscription's name takes the rest.
    let fits = (524_288 - 2 - SUB.len()) / 503;
    let most: Vec<&_> = got.iter().take(fits).collect();
    let one_more: Vec<&_> = got.iter().take(fits + 1).collect();
    let refused = world.ack(&one_more).unwrap_err();
    assert_eq!(refused, Refusal::PayloadTooLarge { limit: 524_288 });
    assert_eq!(world.record().acks, 0);
    world.ack(&most).unwrap();
    assert_eq!(world.record().acks, fits as u64);
    assert_eq!(world.ack(&[]), Err(Refusal::NoAckIds));
}

#[test]
fn pings_are_answered_from_protocol_version_one_on() {
    for (version, setting, answered) in [(1, true, true), (0, true, false), (1, false, false)] {
        let mut settings = Settings::default();
        settings.answer_pings = setting;
        let mut world = World::with(settings, |_| ());
        let stream = world.open_with(|first| first.protocol_version = version);
        assert_eq!(world.poll(stream), StreamPoll::Idle);
        let ping = StreamingPullRequest::default();
        world
            .state
            .handle_stream_request(world.now, stream, &ping)
            .unwrap();
        assert_eq!(world.state.take_woken().contains(&stream), answered);
        let polled = world.poll(stream);
        if !answered {
            assert_eq!(polled, StreamPoll::Idle, "version {version}");
            continue;
        }
        let StreamPoll::Response(response) = polled else {
            panic!("no answer: {polled:?}")
        };
        assert!(response.received_messages.is_empty());
        assert!(response.subscription_properties.is_some());
    }
}

#[test]
fn an_idle_stream_and_an_old_one_are_ended_where_that_is_set() {
    let mut settings = Settings::default();
    settings.idle_stream_limit = Some(Duration::from_secs(75));
    settings.stream_lifetime = Some(Duration::from_secs(200));
    let mut world = World::with(settings, |_| ());
    let silent = world.open();
    let pinging = world.open();
    for _ in 0..5 {
        world.pass_secs(40);
        let ping = StreamingPullRequest::default();
        world
            .state
            .handle_stream_request(world.now, pinging, &ping)
            .unwrap();
        let ended = matches!(
            world.poll(silent),
            StreamPoll::End(Some(Refusal::StreamClosed))
        );
        assert_eq!(ended, world.now.as_unix().as_secs() >= 1_800_000_075);
    }
    assert_eq!(
        world.poll(pinging),
        StreamPoll::End(Some(Refusal::StreamClosed))
    );
    assert_eq!(Refusal::StreamClosed.code(), Code::Unavailable);
}

#[test]
fn a_half_closed_stream_ends_with_ok_and_its_messages_wait_for_their_deadline() {
    let mut world = World::new(|_| ());
    numbered(&mut world, 1);
    let stream = world.open();
    world.drain(stream);
    world.state.handle_half_close(world.now, stream);
    assert_eq!(world.poll(stream), StreamPoll::End(None));
    world.state.close_stream(world.now, stream);
    assert!(world.pull(1).is_empty());
    world.pass_secs(10);
    assert_eq!(world.pull(1).len(), 1);
}

#[test]
fn a_closed_stream_can_give_everything_back_at_once() {
    let mut settings = Settings::default();
    settings.on_stream_close = OnStreamClose::RedeliverAtOnce;
    let mut world = World::with(settings, |_| ());
    numbered(&mut world, 3);
    let stream = world.open();
    let got = world.drain(stream);
    world.ack(&[&got[1]]).unwrap();
    world.state.close_stream(world.now, stream);
    assert_eq!(texts(&world.pull(10)), ["0", "2"]);
    assert!(
        world
            .record()
            .deliveries
            .iter()
            .all(|delivery| delivery.attempt == 1)
    );
}

#[test]
fn streams_of_one_subscription_share_what_is_there() {
    let mut world = World::new(|_| ());
    let streams: Vec<StreamId> = (0..4).map(|_| world.open()).collect();
    for stream in &streams {
        assert_eq!(world.poll(*stream), StreamPoll::Idle);
    }
    numbered(&mut world, 40);
    let mut counts = [0; 4];
    let mut woken: VecDeque<StreamId> = world.state.take_woken().into_iter().collect();
    assert_eq!(woken.len(), 4);
    while let Some(stream) = woken.pop_front() {
        // As a greedy client would: take until there is nothing.
        while let StreamPoll::Response(response) = world.poll(stream) {
            let place = streams.iter().position(|one| *one == stream).unwrap();
            counts[place] += response.received_messages.len();
        }
        woken.extend(world.state.take_woken());
    }
    assert_eq!(counts.iter().sum::<usize>(), 40);
    assert!(counts.iter().all(|count| *count >= 5), "{counts:?}");
}

#[test]
fn early_redelivery_repeats_a_message_under_its_lease() {
    let mut world = World::new(|_| ());
    let ids = world.publish(&["x"]);
    let stream = world.open();
    let first = world.drain(stream);
    assert!(world.state.handle_early_redelivery(world.now, SUB, &ids[0]));
    let second = world.drain(stream);
    assert_eq!(text(&first[0]), text(&second[0]));
    assert!(!world.state.handle_early_redelivery(world.now, SUB, "7"));
    world.ack(&[&second[0]]).unwrap();
    assert!(!world.state.handle_early_redelivery(world.now, SUB, &ids[0]));
}

#[test]
fn a_planned_redelivery_happens_at_its_time_if_the_message_is_still_out() {
    let mut world = World::new(|_| ());
    let ids = world.publish(&["x", "y"]);
    let got = world.pull(2);
    for id in &ids {
        let after = Duration::from_secs(3);
        world.state.plan_early_redelivery(world.now, SUB, id, after);
    }
    world.ack(&[&got[0]]).unwrap();
    world.pass_secs(2);
    assert!(world.pull(2).is_empty());
    world.pass_secs(1);
    assert_eq!(texts(&world.pull(2)), ["y"]);
}

#[test]
fn a_deleted_subscription_ends_its_streams_even_when_it_is_created_again() {
    let mut world = World::new(|_| ());
    let stream = world.open();
    assert_eq!(world.poll(stream), StreamPoll::Idle);
    world.state.delete_subscription(world.now, SUB).unwrap();
    assert!(world.state.take_woken().contains(&stream));
    world
        .subscription(SUB, crate::world::TOPIC, |_| ())
        .unwrap();
    numbered(&mut world, 1);
    let StreamPoll::End(Some(refusal)) = world.poll(stream) else {
        panic!("it goes on")
    };
    assert_eq!(refusal.code(), Code::NotFound);
    world.state.close_stream(world.now, stream);
    assert_eq!(world.pull(1).len(), 1);
}

#[test]
fn a_detached_subscription_drops_what_it_holds_and_refuses_pulling() {
    let mut world = World::new(|_| ());
    numbered(&mut world, 3);
    let stream = world.open_with(|first| first.max_outstanding_messages = 1);
    world.drain(stream);
    world.state.detach_subscription(world.now, SUB).unwrap();
    assert_eq!(world.poll(stream), StreamPoll::End(Some(Refusal::Detached)));
    world.state.close_stream(world.now, stream);
    numbered(&mut world, 1);
    assert_eq!(world.state.pull(world.now, SUB, 1), Err(Refusal::Detached));
    assert_eq!(world.record().backlog, 0);
    assert!(world.state.subscription(world.now, SUB).unwrap().detached);
}
