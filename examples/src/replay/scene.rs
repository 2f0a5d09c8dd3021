//! A shop whose topic and queue refuse some of what they get, until somebody repairs them.

use std::{error::Error, time::Duration};

use cloudtasks_sink::{CloudTasksSink, HttpTask};
use futures::SinkExt;
use gcp_emulator::{Body, Code, Emulator, Fault, Method, Rule, RuleId};
use gcp_wire::Endpoint;
use pubsub_sink::{PublishMessage, PubsubDeadLetterQueue, PubsubSink};

use super::{ReplayError, Report, replay};

const ORDERS: &str = "projects/shop/topics/orders";
const REJECTED: &str = "projects/shop/topics/rejected";
const LETTERS: &str = "projects/shop/subscriptions/rejected";
const CALLS: &str = "projects/shop/locations/europe-west1/queues/calls";

type Failed = Box<dyn Error + Send + Sync>;

pub(super) struct Scene {
    emulator: Emulator,
    /// What makes the topic and the queue refuse.
    causes: [RuleId; 2],
}

impl Scene {
    /// Twelve orders and six calls, of which the topic and the queue refuse every third, and one
    /// order that does not even encode: seven dead letters.
    pub(super) async fn set() -> Result<Self, ReplayError> {
        let emulator = Emulator::builder().queue(CALLS).start();
        let scene = Self {
            causes: causes(&emulator),
            emulator,
        };
        scene.reject().await.map_err(ReplayError::Scene)?;
        Ok(scene)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::in_memory(self.emulator.dialer())
    }

    async fn reject(&self) -> Result<(), Failed> {
        self.emulator.create_topic(ORDERS)?;
        self.emulator.create_topic(REJECTED)?;
        self.emulator
            .create_subscription(LETTERS, REJECTED, |_| {})?;
        let queue = || -> Result<PubsubDeadLetterQueue, Failed> {
            let queue = PubsubDeadLetterQueue::builder(REJECTED.parse()?);
            Ok(queue.endpoint(self.endpoint()).build()?)
        };
        let mut orders = PubsubSink::builder(|order: &u32| {
            if *order == 100 {
                return Err("an order without a total".into());
            }
            let message = PublishMessage::json(order)?.attribute("shop", "berlin");
            Ok(Some(
                message.ordering_key(format!("customer-{}", order % 2)),
            ))
        })
        .topic(ORDERS.parse()?)
        .message_ordering(true)
        .endpoint(self.endpoint())
        .on_rejected(queue()?)
        .build()?;
        let mut calls = CloudTasksSink::builder(|call: &u32| {
            let task = HttpTask::post(format!("https://partner.example/orders/{call}"))?;
            Ok(Some(task))
        })
        .queue(CALLS.parse()?)
        .endpoint(self.endpoint())
        .on_rejected(queue()?)
        .build()?;
        for order in (0..12).chain([100]) {
            orders.feed(order).await?;
        }
        for call in 0..6 {
            calls.feed(call).await?;
        }
        orders.close().await?;
        calls.close().await?;
        Ok(())
    }

    /// Repairs what refused, and drives the dead letters again.
    pub(super) async fn play(self, idle: Duration) -> Result<Report, ReplayError> {
        for cause in self.causes {
            self.emulator.faults().remove(cause);
        }
        let (pubsub, tasks) = (self.endpoint(), self.endpoint());
        let report = replay(LETTERS.parse()?, pubsub, tasks, idle).await?;
        let seen = self.emulator.observe();
        let (orders, calls) = (seen.topic(ORDERS).published, seen.queue(CALLS).tasks);
        println!("orders stored         {orders} of 12");
        println!("calls created         {calls} of 6");
        Ok(report)
    }
}

/// The topic's schema and the queue know only numbers that are no multiple of three.
fn causes(emulator: &Emulator) -> [RuleId; 2] {
    let refuse = || Fault::answer(Code::InvalidArgument, "no multiples of three");
    let schema = Rule::on(Method::Publish)
        .when(|call| {
            let Body::Publish(request) = &call.body else {
                return false;
            };
            let messages = request.messages.iter();
            let mut numbers = messages.filter_map(|message| number(&message.data));
            request.topic == ORDERS && numbers.any(|number| number % 3 == 0)
        })
        .then(refuse());
    let queue = Rule::on(Method::CreateTask)
        .when(|call| {
            let Body::CreateTask(request) = &call.body else {
                return false;
            };
            let task = format!("{:?}", request.task);
            ["/orders/0\"", "/orders/3\""]
                .iter()
                .any(|end| task.contains(end))
        })
        .then(refuse());
    [emulator.faults().add(schema), emulator.faults().add(queue)]
}

fn number(data: &[u8]) -> Option<u32> {
    std::str::from_utf8(data).ok()?.parse().ok()
}
