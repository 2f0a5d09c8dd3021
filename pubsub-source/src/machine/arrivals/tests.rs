use gcp_wire::{Code, proto::pubsub::ModifyAckDeadlineRequest};
use prost::Message as _;

use super::*;
use crate::{
    machine::{CallMethod, Effect, Restoration, streams::LAST_FAREWELL},
    on_drop::OnDrop,
    settings::Settings,
};

const SECOND: Duration = Duration::from_secs(1);

/// A machine with one open stream.
struct Open {
    machine: Machine,
    now: Instant,
    stream: StreamId,
    next: u64,
}

impl Open {
    fn new(settings: Settings) -> Self {
        let now = crate::driver::now();
        let subscription = "projects/demo-project/subscriptions/s11".parse().unwrap();
        let restoration = Restoration::default();
        let mut machine = Machine::new(now, subscription, "a-source".into(), settings, restoration);
        machine.start(now);
        let stream = opened(&mut machine, now).expect("a stream opens");
        Self {
            machine,
            now,
            stream,
            next: 1,
        }
    }

    /// Delivers one message more.
    fn deliver(&mut self) {
        self.deliver_after(Duration::ZERO);
    }

    /// Delivers one message more, which the server sent so long ago.
    fn deliver_after(&mut self, under_way: Duration) {
        let message = Message::fake(self.next, 10);
        self.deliver_this(message, under_way);
    }

    /// Delivers one message more of a key, for which time of all.
    fn deliver_in_order(&mut self, attempt: u32) {
        let mut message = Message::fake(self.next, 10);
        message.ordering_key = "k".into();
        message.attempt = attempt;
        self.deliver_this(message, Duration::ZERO);
    }

    fn deliver_this(&mut self, message: Message, under_way: Duration) {
        let mut ack_ids = AckIds::default();
        assert!(ack_ids.push(self.next.to_string().as_bytes()));
        let pulled = Pulled {
            messages: vec![message],
            keys: vec![MessageKey::Number(self.next)],
            ack_ids,
            bytes: 0,
            leased_since: self.now.checked_sub(under_way).unwrap(),
            exactly_once: None,
            ordered: None,
        };
        self.next += 1;
        self.machine
            .handle_response(self.now, 0.0, self.stream, pulled);
    }

    /// A response comes that cannot be read; the next stream opens, unless it was the last straw.
    fn fail_to_read(&mut self) {
        let cause = RpcError::status("StreamingPull", Code::Internal, "a wrong wire type");
        self.machine
            .handle_undecodable(self.now, 0.0, self.stream, cause);
        self.wait(SECOND * 20);
    }

    fn pass(&mut self, span: Duration) {
        self.now += span;
        self.machine.handle_timeout(self.now);
    }

    fn wait(&mut self, span: Duration) {
        self.pass(span);
        if let Some(stream) = opened(&mut self.machine, self.now) {
            self.stream = stream;
        }
    }

    /// The server ends the stream.
    fn end(&mut self) {
        let (now, stream) = (self.now, self.stream);
        self.machine
            .handle_stream_ended(now, 0.0, stream, StreamEnd::Again, None);
    }

    /// The seconds for which each id of the requests that are sent now is leased, or held back.
    fn modified(&mut self) -> Vec<i32> {
        let mut seconds = Vec::new();
        while let Some(effect) = self.machine.poll_effect(self.now) {
            if let Effect::Call { method, body, .. } = effect {
                assert_eq!(method, CallMethod::ModifyAckDeadline);
                let request = ModifyAckDeadlineRequest::decode(body).unwrap();
                seconds.extend(request.ack_ids.iter().map(|_| request.ack_deadline_seconds));
            }
        }
        seconds
    }
}

fn opened(machine: &mut Machine, now: Instant) -> Option<StreamId> {
    let mut newest = None;
    while let Some(effect) = machine.poll_effect(now) {
        if let Effect::Open { stream, .. } = effect {
            machine.handle_opened(now, stream);
            newest = Some(stream);
        }
    }
    newest
}

#[test]
fn what_arrives_while_a_source_ends_is_treated_like_what_it_held() {
    for (choice, expected) in [
        (None, vec![0, 0]),
        (Some(OnDrop::Release), vec![0, 0]),
        (Some(OnDrop::Lapse), vec![]),
        (Some(OnDrop::ReleaseAfter(SECOND * 30)), vec![30, 30]),
    ] {
        let mut open = Open::new(Settings {
            on_drop: choice,
            ..Settings::default()
        });
        open.deliver();
        open.machine.close(open.now);
        open.deliver();
        open.end();
        assert_eq!(open.modified(), expected, "{choice:?}");
        open.machine.check_invariants();
    }
}

/// A server that has not taken notice of the half-close would deliver it on the same stream again.
#[test]
fn nothing_is_given_back_while_a_half_closed_stream_may_deliver_it_again() {
    let held = |settle: fn(&mut Open)| {
        let mut open = Open::new(Settings::default());
        open.deliver();
        settle(&mut open);
        open.deliver();
        assert_eq!(open.modified(), [0; 0]);
        assert!(!open.machine.has_work(), "the driver may rest");
        open
    };
    let mut closed = held(|open| open.machine.close(open.now));
    closed.end();
    assert_eq!(closed.modified(), [0, 0], "the stream has ended");

    let mut dropped = held(|open| open.machine.close(open.now));
    let farewell = dropped.machine.poll_timeout().unwrap() - dropped.now;
    assert_eq!(farewell, LAST_FAREWELL);
    dropped.pass(farewell);
    assert_eq!(dropped.modified(), [0, 0], "the stream was dropped");

    let mut hurried = Open::new(Settings {
        close_budget: SECOND,
        ..Settings::default()
    });
    hurried.deliver();
    hurried.machine.close(hurried.now);
    hurried.pass(SECOND / 5);
    assert_eq!(hurried.modified(), [0], "most of the budget is left");

    let mut stopped = held(|open| open.machine.stop(open.now));
    stopped.machine.close(stopped.now);
    stopped.pass(LAST_FAREWELL);
    assert_eq!(stopped.modified(), [0, 0]);

    let mut parked = held(|open| {
        open.machine.pause(open.now);
        open.machine.park(open.now);
    });
    parked.end();
    assert_eq!(parked.modified(), [0, 0]);
}

/// The server counts a lease from when it sent the message.
#[test]
fn what_was_on_its_way_for_long_is_extended_when_it_arrives() {
    let mut open = Open::new(Settings::default());
    let lease = open.machine.lease;
    open.deliver_after(lease / PAUSE);
    assert_eq!(open.modified(), [0; 0]);
    open.deliver_after(lease / PAUSE + SECOND);
    assert_eq!(open.modified(), [60]);
}

#[test]
fn a_response_that_never_can_be_read_ends_the_source_although_others_can_be() {
    let mut open = Open::new(Settings::default());
    for tries in 1..=DECODE_TRIES {
        assert!(open.machine.closed().is_none(), "before try {tries}");
        open.deliver();
        open.fail_to_read();
    }
    let error = open.machine.take_error().expect("the source ends");
    assert!(
        matches!(error, SourceError::Undecodable { tries, .. } if tries == DECODE_TRIES),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(text.contains("5 times") && text.contains("s11"), "{text}");
}

#[test]
fn responses_that_cannot_be_read_once_in_a_while_do_not_end_the_source() {
    let mut open = Open::new(Settings::default());
    for _ in 0..3 * DECODE_TRIES {
        open.fail_to_read();
        open.wait(SECOND * 700);
        assert!(open.machine.closed().is_none());
    }
}

#[test]
fn what_waits_for_a_message_that_may_be_gone_costs_one_attempt_at_most() {
    for (attempt, expected) in [(0, vec![]), (1, vec![122])] {
        let mut open = Open::new(Settings {
            message_ordering: true,
            ..Settings::default()
        });
        open.deliver_in_order(attempt);
        open.wait(SECOND * 60);
        assert_eq!(open.machine.stats(open.now).lapsed_in_buffer, 1);
        let before = open.machine.stats(open.now).dropped_behind;
        // It is awaited for a lease and a minute.
        open.deliver_in_order(attempt);
        assert_eq!(open.modified(), expected, "attempt {attempt}");
        assert_eq!(open.machine.stats(open.now).dropped_behind, before + 1);
        open.machine.check_invariants();
    }
}
