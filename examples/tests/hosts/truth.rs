//! What is true of each message, and the laws that hold at every moment.

use std::collections::BTreeMap;

use gcp_emulator::{
    Observation,
    cloudtasks::proto::{Task, task::MessageType},
    pubsub::proto::PubsubMessage,
};
use tokio::time::{Duration, Instant};

use crate::{cover::Cover, plan::Plan};

pub(crate) const SUBSCRIPTION: &str = "projects/demo/subscriptions/orders";

/// What a saved state covers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cut {
    /// Every message of this epoch and those before.
    pub(crate) cover: Cover,
    /// Those of them whose commit was confirmed before the cut: no state names them any more.
    pub(crate) confirmed: Cover,
    /// The store said that its state is durable.
    saved: bool,
}

/// Where a message's outputs were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Topic,
    Queue,
}

#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) plan: Plan,
    ids: BTreeMap<String, usize>,
    cuts: Vec<Cut>,
    /// What a state covers that was durable, now or at some time.
    durable: Cover,
    /// What the state covers that the running host began with.
    restored: Cover,
    pub(crate) confirmed: Cover,
    handed_now: Cover,
    pub(crate) handed: Vec<u32>,
    last_handed: BTreeMap<usize, usize>,
    /// The first cut that covers the newest hand-out of each message.
    covered_by: Vec<usize>,
    /// What came again under a live lease: where that did not arrive, the acknowledgement of what did
    /// arrive is answered and has no effect.
    twice: Cover,
    acked: Cover,
    acks_seen: usize,
    /// Until when a server may still do what an acknowledgement asks for.
    acks_under_way: Option<Instant>,
    /// The identities of a message's copies, empty ones when it was not staged.
    pub(crate) copies: Vec<Vec<String>>,
    copies_seen: Vec<usize>,
    /// The newest message of a key that was published.
    last_copied: BTreeMap<usize, usize>,
    pub(crate) tasks: Vec<Vec<String>>,
    tasks_seen: Vec<usize>,
    /// How many hosts began with a state that names the message as not confirmed.
    pub(crate) named: Vec<u32>,
    /// Requests for its outputs whose answer may not have arrived.
    pub(crate) disturbed: [Vec<u32>; 2],
    recent: Vec<(Instant, Output, Vec<usize>)>,
    suffered: Option<Instant>,
    pub(crate) state_lost: bool,
    /// Names may have been forgotten.
    pub(crate) hours: bool,
}

impl Truth {
    pub(crate) fn new(plan: Plan) -> Self {
        let none = vec![0; plan.messages];
        Self {
            ids: BTreeMap::new(),
            cuts: Vec::new(),
            durable: Cover::default(),
            restored: Cover::default(),
            confirmed: Cover::default(),
            handed_now: Cover::default(),
            handed: none.clone(),
            last_handed: BTreeMap::new(),
            covered_by: vec![0; plan.messages],
            twice: Cover::default(),
            acked: Cover::default(),
            acks_seen: 0,
            acks_under_way: None,
            copies: vec![Vec::new(); plan.messages],
            copies_seen: vec![0; plan.topics().count()],
            last_copied: BTreeMap::new(),
            tasks: vec![Vec::new(); plan.messages],
            tasks_seen: vec![0; plan.queues().count()],
            named: none.clone(),
            disturbed: [none.clone(), none],
            recent: Vec::new(),
            suffered: None,
            state_lost: false,
            hours: false,
            plan,
        }
    }

    pub(crate) fn sent(&mut self, id: String, message: usize) {
        self.ids.insert(id, message);
    }

    /// A message is delivered although its lease lasts.
    pub(crate) fn comes_twice(&mut self, message: usize) {
        self.twice.insert(message);
    }

    pub(crate) fn message(&self, id: &str) -> usize {
        self.ids[id]
    }

    /// Whether a message that a durable state covers may be handed out again.
    pub(crate) fn may_repeat(&self, message: usize) -> bool {
        self.state_lost
            || !self.plan.recognises()
            || self.plan.keys.is_some()
            || self.twice.has(message)
    }

    /// A message came out of the source.
    pub(crate) fn hand_out(&mut self, message: usize) {
        let again = self.handed_now.has(message);
        if let Some(key) = self.plan.key(message) {
            let place = self.place(message, |_| true);
            let last = self.last_handed.insert(key, place);
            let next = last.map_or(0, |last| last + 1);
            assert!(
                place <= next,
                "{message} is handed out before another one of key {key}: {place} after {last:?}"
            );
        } else {
            let twice = self.twice.has(message);
            assert!(!again || twice, "{message} is handed out twice");
            assert!(
                !self.restored.has(message) || self.may_repeat(message),
                "{message} is handed out although the restored state covers it"
            );
        }
        self.handed_now.insert(message);
        self.handed[message] += 1;
        self.confirmed.remove(message);
        self.covered_by[message] = self.cuts.len();
    }

    /// How many messages of its key come before a message, of those that count.
    fn place(&self, message: usize, counts: impl Fn(usize) -> bool) -> usize {
        let key = self.plan.key(message);
        (0..message)
            .filter(|other| self.plan.key(*other) == key && counts(*other))
            .count()
    }

    /// The host cuts now. Answers the number under which the cut is known.
    pub(crate) fn cut(&mut self) -> usize {
        self.cuts.push(Cut {
            cover: self.restored.and(self.handed_now),
            confirmed: self.confirmed,
            saved: false,
        });
        self.cuts.len() - 1
    }

    pub(crate) fn cover(&self, cut: usize) -> Cover {
        self.cuts[cut].cover
    }

    /// The state of a cut is durable for certain.
    pub(crate) fn saved(&mut self, cut: usize) {
        self.cuts[cut].saved = true;
        self.durable = self.durable.and(self.cuts[cut].cover);
    }

    /// Every receipt of a cut's commit has resolved.
    pub(crate) fn settled(&mut self, cut: usize) {
        let mut settled = self.cuts[cut].cover;
        for (message, covered_by) in self.covered_by.iter().enumerate() {
            if *covered_by > cut {
                // What it was when it was handed out again is another commit's.
                settled.remove(message);
            }
        }
        self.confirmed = self.confirmed.and(settled);
    }

    /// A host begins with a cut's state, or with none. Answers whether its save had failed.
    pub(crate) fn restore(&mut self, cut: Option<usize>, settled: bool) -> bool {
        let failed = cut.is_some_and(|cut| !std::mem::replace(&mut self.cuts[cut].saved, true));
        let cut = cut.map_or_else(Cut::default, |cut| self.cuts[cut]);
        self.durable = self.durable.and(cut.cover);
        self.restored = cut.cover;
        self.handed_now = Cover::default();
        self.confirmed = if settled { cut.cover } else { cut.confirmed };
        let named = cut.cover.without(self.confirmed);
        for message in (0..self.plan.messages).filter(|message| named.has(*message)) {
            self.named[message] += 1;
        }
        failed
    }

    /// A request for outputs arrived, and what becomes of it.
    pub(crate) fn asked(&mut self, output: Output, messages: Vec<usize>, disturbed: bool) {
        let now = Instant::now();
        // Of one moment nobody knows what came first.
        if disturbed || self.suffered == Some(now) {
            self.disturb(output, &messages);
        }
        self.recent.push((now, output, messages));
        if self.recent.len() > 64 {
            self.recent.remove(0);
        }
    }

    /// Something happened to connections: what was asked for in this moment may lack its answer.
    pub(crate) fn connections_suffered(&mut self) {
        let now = Instant::now();
        self.suffered = Some(now);
        for (at, output, messages) in std::mem::take(&mut self.recent) {
            if at == now {
                self.disturb(output, &messages);
            }
        }
    }

    fn disturb(&mut self, output: Output, messages: &[usize]) {
        for message in messages {
            self.disturbed[output as usize][*message] += 1;
        }
    }

    /// An acknowledgement arrived, and takes effect up to so long from now.
    pub(crate) fn ack_under_way(&mut self, span: Duration) {
        let until = Instant::now() + span;
        self.acks_under_way = self.acks_under_way.max(Some(until));
    }

    /// Whether a message is acknowledged, or may be soon, whose outputs are only in the state.
    pub(crate) fn lives_on_the_state(&self) -> bool {
        let soon = self.acks_under_way >= Some(Instant::now());
        soon || (0..self.plan.messages).any(|message| {
            self.acked.has(message)
                && (Plan::is_published(message) && self.copies[message].is_empty()
                    || Plan::is_task(message) && self.tasks[message].is_empty())
        })
    }

    /// Looks at what the servers did since the last time. Called before anything becomes durable, so
    /// that what came too early is seen.
    pub(crate) fn look(&mut self, seen: &Observation) {
        for (topic, name) in self.plan.topics().enumerate() {
            let Some(record) = seen.topics.get(&name) else {
                continue;
            };
            for copy in record.messages.range(self.copies_seen[topic]..) {
                self.copied(topic, copy);
            }
            self.copies_seen[topic] = record.messages.len();
        }
        for (queue, name) in self.plan.queues().enumerate() {
            let Some(record) = seen.queues.get(&name) else {
                continue;
            };
            for task in record.created.range(self.tasks_seen[queue]..) {
                let message = number(&task.stored).expect("a task of ours");
                assert_eq!(
                    queue,
                    self.plan.queue(message),
                    "{message} in a wrong queue"
                );
                assert!(
                    !self.plan.tasks.staged() || self.durable.has(message),
                    "the task of {message} is created before its state is durable"
                );
                self.tasks[message].push(task.name.clone());
            }
            self.tasks_seen[queue] = record.created.len();
        }
        let Some(record) = seen.subscriptions.get(SUBSCRIPTION) else {
            return;
        };
        for settled in record.acked.range(self.acks_seen..) {
            let message = self.ids[&*settled.message_id];
            self.acknowledged(message);
        }
        self.acks_seen = record.acked.len();
    }

    fn copied(&mut self, topic: usize, copy: &PubsubMessage) {
        let message = payload(&copy.data).expect("a message of ours");
        assert_eq!(
            topic,
            self.plan.topic(message),
            "{message} in a wrong topic"
        );
        assert!(
            !self.plan.publish_staged || self.durable.has(message),
            "{message} is published before its state is durable"
        );
        if let Some(key) = self.plan.key(message) {
            let place = self.place(message, Plan::is_published);
            // A request of a host that died may be evaluated late, and repeat what is long there.
            let last = self.last_copied.get(&key).copied();
            self.last_copied.insert(key, last.unwrap_or(0).max(place));
            let next = last.map_or(0, |last| last + 1);
            assert!(
                place <= next,
                "{message} is published before another one of key {key}: {place} after {last:?}"
            );
        }
        let part = |name| copy.attributes.get(name).cloned().unwrap_or_default();
        self.copies[message].push(part("incarnation") + &part("sequence"));
    }

    fn acknowledged(&mut self, message: usize) {
        assert!(
            self.durable.has(message),
            "{message} is acknowledged before a state that covers it is durable"
        );
        assert!(
            self.plan.publish_staged
                || !Plan::is_published(message)
                || !self.copies[message].is_empty(),
            "{message} is acknowledged before it is published"
        );
        assert!(
            self.plan.tasks.staged() || !Plan::is_task(message) || !self.tasks[message].is_empty(),
            "{message} is acknowledged before its task is created"
        );
        self.acked.insert(message);
    }
}

/// The message that a payload is of.
pub(crate) fn payload(data: &[u8]) -> Option<usize> {
    std::str::from_utf8(data).ok()?.parse().ok()
}

/// The message that a task is of.
pub(crate) fn number(task: &Task) -> Option<usize> {
    match task.message_type.as_ref()? {
        MessageType::HttpRequest(request) => payload(&request.body),
        MessageType::AppEngineHttpRequest(_) => None,
    }
}
