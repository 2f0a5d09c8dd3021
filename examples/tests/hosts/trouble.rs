//! What goes wrong in the servers and between them and the host.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gcp_emulator::{Body, Call, Code, Fault, Method, Rule, pubsub::proto::ReceivedMessage};
use tokio::time::Instant;

use crate::{
    fate::Fate,
    truth::{Output, number, payload},
    world::{Shared, World},
};

/// After so much silence, and at most twice as much, a client gives a connection up.
const PING_INTERVAL: Duration = Duration::from_secs(40);

/// The messages that a call wants outputs of.
fn outputs(call: &Call) -> Option<(Output, Vec<usize>)> {
    match &call.body {
        Body::Publish(request) => {
            let messages = request.messages.iter();
            Some((
                Output::Topic,
                messages
                    .filter_map(|message| payload(&message.data))
                    .collect(),
            ))
        }
        Body::CreateTask(request) => {
            let number = request.task.as_ref().and_then(number);
            Some((Output::Queue, number.into_iter().collect()))
        }
        Body::BatchCreateTasks(request) => {
            let tasks = request.requests.iter();
            Some((
                Output::Queue,
                tasks
                    .filter_map(|request| request.task.as_ref().and_then(number))
                    .collect(),
            ))
        }
        Body::Acknowledge(_)
        | Body::ModifyAckDeadline(_)
        | Body::Pull(_)
        | Body::StreamingPull(_)
        | Body::Seek(_)
        | Body::CreateTopic(_)
        | Body::CreateSubscription(_)
        | Body::Named(_)
        | _ => None,
    }
}

impl Shared {
    /// A call arrived: decides what becomes of it.
    fn decide(&self, call: &Call) -> Option<Fate> {
        self.circles.note_call();
        let outputs = outputs(call);
        let fate = self.fate(call);
        let messages = outputs.as_ref().map(|(_, messages)| messages);
        self.story.tell(format_args!(
            "server: {:?} {messages:?} {} bytes, {fate:?}",
            call.method, call.encoded_len
        ));
        let mut truth = self.truth.lock().unwrap();
        if let Some((output, messages)) = outputs {
            truth.asked(output, messages, fate.is_some());
        }
        if call.method == Method::Acknowledge
            && let Some(span) = fate.and_then(Fate::delay)
        {
            truth.ack_under_way(span);
        }
        let of_connection = fate.is_some_and(|fate| Fate::OF_CONNECTIONS.contains(&fate));
        if of_connection {
            truth.connections_suffered();
        }
        if fate == Some(Fate::Silenced) {
            self.silent.lock().unwrap().get_or_insert_with(Instant::now);
        }
        let mut chance = self.chance.lock().unwrap();
        if call.method == Method::BatchCreateTasks {
            chance.count("a batch of tasks was asked for");
        }
        if let Some(fate) = fate {
            chance.count(fate.name());
        }
        fate
    }

    fn fate(&self, call: &Call) -> Option<Fate> {
        let mut chance = self.chance.lock().unwrap();
        if chance.strikes(|rates| rates.connections) {
            return Some(chance.pick(&Fate::OF_CONNECTIONS));
        }
        let matters = matches!(
            call.method,
            Method::StreamingPull
                | Method::Acknowledge
                | Method::Publish
                | Method::CreateTask
                | Method::BatchCreateTasks
        );
        if matters && chance.strikes(|rates| rates.denials) {
            return Some(Fate::Denied);
        }
        if call.method == Method::StreamingPull {
            return chance
                .strikes(|rates| rates.pulls)
                .then(|| chance.pick(&Fate::OF_PULLS));
        }
        // Where order is promised, what is kept aside would be overtaken.
        let refusable =
            call.method == Method::Publish && self.plan.publish_staged && self.plan.keys.is_none();
        if refusable && chance.strikes(|rates| rates.refusals) {
            return Some(Fate::Refused);
        }
        chance
            .strikes(|rates| rates.calls)
            .then(|| chance.pick(&Fate::OF_CALLS))
    }
}

/// Everything that becomes of calls, deliveries and tasks.
pub(crate) fn rules(shared: &Arc<Shared>) -> Vec<Rule> {
    let fate = Arc::new(Mutex::new(None));
    let decide = {
        let (shared, fate) = (Arc::clone(shared), Arc::clone(&fate));
        // The first rule never holds: it decides which of the next ones does.
        Rule::on_any().when(move |call| {
            *fate.lock().unwrap() = shared.decide(call);
            false
        })
    };
    let mut rules = vec![decide];
    for this in Fate::ALL {
        let fate = Arc::clone(&fate);
        let holds = move |_: &Call| *fate.lock().unwrap() == Some(this);
        rules.push(Rule::on_any().when(holds).then(this.fault()));
    }
    let told = Arc::clone(shared);
    let tell = move |_: &str, got: &ReceivedMessage| {
        let message = got
            .message
            .as_ref()
            .and_then(|message| payload(&message.data));
        told.story
            .tell(format_args!("server: delivers {message:?}"));
        false
    };
    rules.push(Rule::on_delivery().when_delivered(tell));
    for after in [Duration::ZERO, Duration::from_secs(4)] {
        let shared = Arc::clone(shared);
        let twice = move |_: &str, got: &ReceivedMessage| {
            let mut chance = shared.chance.lock().unwrap();
            let strikes = chance.strikes(|rates| rates.twice);
            if strikes {
                chance.count("a message came twice");
                let message = got
                    .message
                    .as_ref()
                    .and_then(|message| payload(&message.data));
                shared.truth.lock().unwrap().comes_twice(message.unwrap());
            }
            strikes
        };
        rules.push(
            Rule::on_delivery()
                .when_delivered(twice)
                .then(Fault::Redeliver(after)),
        );
    }
    if shared.plan.tasks.staged() {
        let shared = Arc::clone(shared);
        let refused = move |_: &_| {
            let mut chance = shared.chance.lock().unwrap();
            let strikes = chance.strikes(|rates| rates.refusals);
            if strikes {
                chance.count("a record was refused and kept aside");
            }
            strikes
        };
        let fault = Fault::answer(Code::InvalidArgument, "as the seed has it");
        rules.push(Rule::on_task().when_task(refused).then(fault));
    }
    rules
}

impl World {
    /// Connections break, now and then, until the faults are over.
    pub(crate) async fn disturb_network(&self) {
        loop {
            let pause = self.chance().millis(500..8_000);
            tokio::time::sleep(pause).await;
            if !self.chance().strikes(|rates| rates.network) {
                continue;
            }
            let what = self.chance().random().u8(..5);
            self.tell(format_args!("network: trouble {what}"));
            self.truth().connections_suffered();
            match what {
                0 => {
                    self.count("all connections broke");
                    self.emulator.drop_connections();
                }
                1 => {
                    self.count("all connections fell silent");
                    self.emulator.silence_connections();
                    let mut silent = self.shared.silent.lock().unwrap();
                    silent.get_or_insert_with(Instant::now);
                }
                2 => {
                    self.count("all connections were told to go");
                    self.emulator.retire_connections();
                }
                3 => {
                    self.count("connections were refused");
                    self.emulator.drop_connections();
                    self.emulator.refuse_connections(true).await.unwrap();
                    let pause = self.chance().millis(100..20_000);
                    tokio::time::sleep(pause).await;
                    self.emulator.refuse_connections(false).await.unwrap();
                }
                _ => self.redeliver_one(),
            }
        }
    }

    /// A connection that carries nothing is ended after a while. With the service the HTTP/2 pings of
    /// the client see to that; to a server in memory it sends none.
    pub(crate) async fn end_silence(&self) {
        loop {
            tokio::time::sleep(PING_INTERVAL).await;
            let silent = *self.shared.silent.lock().unwrap();
            if silent.is_some_and(|since| since.elapsed() >= PING_INTERVAL) {
                self.tell(format_args!("network: silent connections end"));
                *self.shared.silent.lock().unwrap() = None;
                self.truth().connections_suffered();
                self.emulator.drop_connections();
            }
        }
    }

    fn redeliver_one(&self) {
        let seen = self.emulator.observe();
        let record = seen.subscription(crate::truth::SUBSCRIPTION);
        if record.deliveries.is_empty() {
            return;
        }
        let which = self.chance().random().usize(..record.deliveries.len());
        let id = &record.deliveries[which].message_id;
        if self
            .emulator
            .redeliver_early(crate::truth::SUBSCRIPTION, id)
        {
            self.count("a message came twice");
            let mut truth = self.truth();
            let message = truth.message(id);
            truth.comes_twice(message);
        }
    }
}
