//! Laws of delivery, checked against a client that remembers everything.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gcp_emulator::Time;
use gcp_emulator::pubsub::proto::{ReceivedMessage, StreamingPullRequest};
use gcp_emulator::pubsub::state::{PubsubState, StreamId, StreamPoll};
use proptest::prelude::*;

use crate::world::{SUB, TOPIC, World};

/// A second subscription of the topic, created on the way.
const LATE: &str = "projects/demo/subscriptions/late";

#[derive(Debug, Clone)]
enum Step {
    Publish { key: u8, count: u8 },
    Open { limit: u8 },
    Close { stream: u8 },
    Poll { stream: u8 },
    Pull { most: u8 },
    Ack { picks: Vec<u8> },
    Nack { picks: Vec<u8> },
    Extend { picks: Vec<u8>, seconds: u8 },
    Pass { seconds: u8 },
    Early { pick: u8 },
    CreateLate,
}

fn step() -> impl Strategy<Value = Step> {
    let picks = || prop::collection::vec(any::<u8>(), 1..6);
    prop_oneof![
        4 => (0..4_u8, 1..5_u8).prop_map(|(key, count)| Step::Publish { key, count }),
        1 => (0..6_u8).prop_map(|limit| Step::Open { limit }),
        1 => any::<u8>().prop_map(|stream| Step::Close { stream }),
        6 => any::<u8>().prop_map(|stream| Step::Poll { stream }),
        2 => (1..5_u8).prop_map(|most| Step::Pull { most }),
        4 => picks().prop_map(|picks| Step::Ack { picks }),
        2 => picks().prop_map(|picks| Step::Nack { picks }),
        2 => (picks(), 10..40_u8).prop_map(|(picks, seconds)| Step::Extend { picks, seconds }),
        3 => (0..12_u8).prop_map(|seconds| Step::Pass { seconds }),
        1 => any::<u8>().prop_map(|pick| Step::Early { pick }),
        1 => Just(Step::CreateLate),
    ]
}

/// A delivery as its client sees it.
#[derive(Debug, Clone)]
struct Lease {
    message: String,
    key: String,
    until: Time,
    live: bool,
    stream: Option<u64>,
}

/// A client of the subscription that remembers everything, and knows the rules.
struct Client {
    ordered: bool,
    published: Vec<(String, String)>,
    leases: BTreeMap<String, Lease>,
    newest: BTreeMap<String, String>,
    failures: BTreeMap<String, u32>,
    acked: BTreeSet<String>,
    /// Per key the places (in publication order) of its deliveries.
    runs: BTreeMap<String, Vec<usize>>,
    excused: BTreeSet<String>,
    limits: BTreeMap<u64, u64>,
}

impl Client {
    fn place(&self, message: &str) -> usize {
        let key = &self
            .published
            .iter()
            .find(|(id, _)| id == message)
            .unwrap()
            .1;
        let mut of_key = self.published.iter().filter(|(_, k)| k == key);
        of_key.position(|(id, _)| id == message).unwrap()
    }

    /// Ends leases whose time is over; a failed message excuses its successors.
    fn time_is(&mut self, now: Time) {
        let mut over: Vec<(Time, String)> = self
            .leases
            .iter()
            .filter(|(_, lease)| lease.live && lease.until <= now)
            .map(|(ack_id, lease)| (lease.until, ack_id.clone()))
            .collect();
        // Of leases that end together the earlier message fails; its successors are called back.
        over.sort_by_key(|(until, id)| (*until, self.place(&self.leases[id].message)));
        for (_, ack_id) in over {
            self.fail(&ack_id);
        }
    }

    fn fail(&mut self, ack_id: &str) {
        let Some(lease) = self.leases.get_mut(ack_id).filter(|lease| lease.live) else {
            return;
        };
        lease.live = false;
        let message = lease.message.clone();
        *self.failures.entry(message.clone()).or_default() += 1;
        self.call_back_successors(&message);
    }

    /// What was delivered of the key after `message` comes again.
    fn call_back_successors(&mut self, message: &str) {
        let key = self
            .published
            .iter()
            .find(|(id, _)| id == message)
            .unwrap()
            .1
            .clone();
        if !self.ordered || key.is_empty() {
            return;
        }
        let place = self.place(message);
        let successors: Vec<String> = self
            .published
            .iter()
            .filter(|(_, k)| *k == key)
            .skip(place + 1)
            .map(|(id, _)| id.clone())
            .filter(|id| self.newest.contains_key(id))
            .collect();
        for successor in successors {
            if let Some(lease) = self.leases.get_mut(&self.newest[&successor]) {
                lease.live = false;
            }
            self.acked.remove(&successor);
            self.excused.insert(successor);
        }
    }

    fn receive(&mut self, got: &[ReceivedMessage], now: Time, span: u64, stream: Option<u64>) {
        for received in got {
            let message = received.message.as_ref().unwrap();
            let id = message.message_id.clone();
            assert!(
                !self.acked.contains(&id),
                "{id} was acknowledged and came again"
            );
            if let Some(newest) = self.newest.get(&id) {
                assert!(!self.leases[newest].live, "{id} came while it was leased");
                assert_ne!(*newest, received.ack_id, "an ack id was used twice");
            }
            if self.ordered && !message.ordering_key.is_empty() {
                let place = self.place(&id);
                let run = self.runs.entry(message.ordering_key.clone()).or_default();
                let last = run.last().copied();
                let fits =
                    last.is_none_or(|last| place <= last + 1) && (last.is_some() || place == 0);
                assert!(fits, "{place} came after {last:?}");
                run.push(place);
                let elsewhere = self.leases.values().any(|lease| {
                    lease.live && lease.key == message.ordering_key && lease.stream != stream
                });
                assert!(!elsewhere, "the key is out elsewhere");
            }
            self.newest.insert(id.clone(), received.ack_id.clone());
            let lease = Lease {
                message: id,
                key: message.ordering_key.clone(),
                until: now + Duration::from_secs(span),
                live: true,
                stream,
            };
            self.leases.insert(received.ack_id.clone(), lease);
        }
        if let Some(limit) = stream.and_then(|stream| self.limits.get(&stream)) {
            let out = self
                .leases
                .values()
                .filter(|l| l.live && l.stream == stream)
                .count() as u64;
            assert!(
                *limit == 0 || out <= *limit,
                "{out} out on a stream that takes {limit}"
            );
        }
    }

    fn pick(&self, picks: &[u8]) -> Vec<String> {
        let ids: Vec<&String> = self.leases.keys().collect();
        if ids.is_empty() {
            return Vec::new();
        }
        picks
            .iter()
            .map(|pick| ids[usize::from(*pick) % ids.len()].clone())
            .collect()
    }
}

struct Run {
    world: World,
    client: Client,
    streams: Vec<StreamId>,
    late_since: Option<usize>,
}

impl Run {
    fn new(ordered: bool) -> Self {
        Self {
            world: World::new(|sub| sub.enable_message_ordering = ordered),
            client: Client {
                ordered,
                published: Vec::new(),
                leases: BTreeMap::new(),
                newest: BTreeMap::new(),
                failures: BTreeMap::new(),
                acked: BTreeSet::new(),
                runs: BTreeMap::new(),
                excused: BTreeSet::new(),
                limits: BTreeMap::new(),
            },
            streams: Vec::new(),
            late_since: None,
        }
    }

    fn state(&mut self) -> &mut PubsubState {
        &mut self.world.state
    }

    fn take(&mut self, step: &Step) {
        let now = self.world.now;
        match step {
            Step::Publish { key, count } => {
                let key = if *key == 0 {
                    String::new()
                } else {
                    format!("key-{key}")
                };
                let texts = vec!["x"; usize::from(*count)];
                let ids = self.world.publish_keyed(&key, &texts);
                self.client
                    .published
                    .extend(ids.into_iter().map(|id| (id, key.clone())));
            }
            Step::Open { limit } => {
                if self.streams.len() < 3 {
                    let limit = u64::from(*limit);
                    let stream = self.world.open_with(|first| {
                        first.max_outstanding_messages = i64::try_from(limit).unwrap();
                    });
                    self.client.limits.insert(stream.number(), limit);
                    self.streams.push(stream);
                }
            }
            Step::Close { stream } => {
                if !self.streams.is_empty() {
                    let place = usize::from(*stream) % self.streams.len();
                    let stream = self.streams.remove(place);
                    self.state().close_stream(now, stream);
                }
            }
            Step::Poll { stream } => {
                if !self.streams.is_empty() {
                    let stream = self.streams[usize::from(*stream) % self.streams.len()];
                    if let StreamPoll::Response(response) = self.state().poll_stream(now, stream) {
                        let number = Some(stream.number());
                        self.client
                            .receive(&response.received_messages, now, 10, number);
                    }
                }
            }
            Step::Pull { most } => {
                let got = self.state().pull(now, SUB, i32::from(*most)).unwrap();
                self.client.receive(&got, now, 10, None);
            }
            Step::Ack { picks } => {
                let ids = self.client.pick(picks);
                if !ids.is_empty() {
                    self.state().acknowledge(now, SUB, &ids).unwrap();
                }
                for id in ids {
                    let lease = self.client.leases.get_mut(&id).unwrap();
                    let message = lease.message.clone();
                    let is_newest = self.client.newest[&message] == id;
                    // Until it is delivered again a late acknowledgement counts, unless the message
                    // was given back or called back behind a predecessor.
                    let counts = lease.live || (is_newest && self.counts_late(&message));
                    if counts {
                        self.client.leases.get_mut(&id).unwrap().live = false;
                        self.client.acked.insert(message);
                    }
                }
            }
            Step::Nack { picks } => {
                let ids = self.client.pick(picks);
                for id in ids {
                    self.state()
                        .modify_ack_deadline(now, SUB, std::slice::from_ref(&id), 0)
                        .unwrap();
                    let live = self.client.leases[&id].live;
                    self.client.fail(&id);
                    if live {
                        let message = self.client.leases[&id].message.clone();
                        self.client.excused.insert(message);
                    }
                }
            }
            Step::Extend { picks, seconds } => {
                let ids = self.client.pick(picks);
                if !ids.is_empty() {
                    let span = i32::from(*seconds);
                    self.state()
                        .modify_ack_deadline(now, SUB, &ids, span)
                        .unwrap();
                }
                for id in ids {
                    let lease = self.client.leases.get_mut(&id).unwrap();
                    if lease.live {
                        lease.until = now + Duration::from_secs(u64::from(*seconds));
                    }
                }
            }
            Step::Pass { seconds } => {
                self.world.pass_secs(u64::from(*seconds));
                self.client.time_is(self.world.now);
            }
            Step::Early { pick } => {
                let Some((message, _)) = self.client.published.get(usize::from(*pick)).cloned()
                else {
                    return;
                };
                if self.state().handle_early_redelivery(now, SUB, &message) {
                    let newest = self.client.newest[&message].clone();
                    self.client.leases.get_mut(&newest).unwrap().live = false;
                    self.client.call_back_successors(&message);
                }
            }
            Step::CreateLate => {
                if self.late_since.is_none() {
                    self.world.subscription(LATE, TOPIC, |_| ()).unwrap();
                    self.late_since = Some(self.client.published.len());
                }
            }
        }
        self.world.state.check_invariants();
    }

    /// Whether an acknowledgement under the newest, ended lease of a message counts.
    fn counts_late(&self, message: &str) -> bool {
        !self.client.excused.contains(message) && !self.client.acked.contains(message)
    }

    /// From now on everything is acknowledged at once, until nothing comes any more.
    fn settle(&mut self) {
        let stream = self.world.open();
        self.streams.push(stream);
        for _ in 0..1000 {
            self.world.pass_secs(11);
            self.client.time_is(self.world.now);
            for stream in self.streams.clone() {
                let now = self.world.now;
                loop {
                    let polled = self.world.state.poll_stream(now, stream);
                    let StreamPoll::Response(response) = polled else {
                        assert_eq!(polled, StreamPoll::Idle, "the stream ended");
                        break;
                    };
                    let got = response.received_messages;
                    self.client.receive(&got, now, 10, Some(stream.number()));
                    let ids: Vec<String> = got.iter().map(|m| m.ack_id.clone()).collect();
                    let request = StreamingPullRequest {
                        ack_ids: ids.clone(),
                        ..StreamingPullRequest::default()
                    };
                    self.world
                        .state
                        .handle_stream_request(now, stream, &request)
                        .unwrap();
                    for id in ids {
                        let lease = self.client.leases.get_mut(&id).unwrap();
                        lease.live = false;
                        self.client.acked.insert(lease.message.clone());
                    }
                }
            }
            self.world.state.check_invariants();
            if self.world.record().backlog == 0 {
                return;
            }
        }
        panic!("{} messages never come", self.world.record().backlog);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_message_is_delivered_and_none_while_leased_or_acknowledged(
        ordered in any::<bool>(),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut run = Run::new(ordered);
        for step in &steps {
            run.take(step);
        }
        run.settle();
        let record = run.world.record();

        // Every message published after the subscription was created is acknowledged in the end.
        let acked = record.acked_ids();
        for (id, _) in &run.client.published {
            prop_assert!(acked.contains(id.as_str()), "{id} was never acknowledged");
        }
        // Nothing else is delivered, and each delivery counts its message's failures.
        let mut expected = BTreeMap::new();
        for delivery in &record.deliveries {
            let attempts = expected.entry(&delivery.message_id).or_insert(1_u32);
            prop_assert!(delivery.attempt >= *attempts);
            *attempts = delivery.attempt;
        }
        for (id, attempts) in expected {
            let failures = run.client.failures.get(&**id).copied().unwrap_or(0);
            prop_assert!(attempts <= failures + 1, "{id}: attempt {attempts} after {failures}");
        }
        prop_assert_eq!(record.nacks + record.lapses, run.client.failures.values().map(|n| u64::from(*n)).sum::<u64>());

        // The subscription created on the way has what was published since.
        if let Some(since) = run.late_since {
            let mut got = BTreeSet::new();
            loop {
                let pulled = run.world.state.pull(run.world.now, LATE, 100).unwrap();
                if pulled.is_empty() {
                    break;
                }
                got.extend(pulled.into_iter().map(|m| m.message.unwrap().message_id));
            }
            let wanted: BTreeSet<String> =
                run.client.published.iter().skip(since).map(|(id, _)| id.clone()).collect();
            prop_assert_eq!(got, wanted);
        }
    }
}
