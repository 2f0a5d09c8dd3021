//! The checkpoint contract, clause by clause.

use std::time::Duration;

use connector_core::{
    Committed, Receipt, Rejected, Restored,
    conformance::{FlakyHandler, Harness, Hold, SinkHarness},
};
use gcp_emulator::{Answer, Code, Fault, Method, Rule, RuleId};
use gcp_wire::proto::pubsub::PubsubMessage;
use prost::Message;
use pubsub_sink::{Delivery, PubsubSink, SinkError, SinkState};
use tokio::{runtime::Handle, task::AbortHandle};

use crate::world::{POISON, Record, World, full, is_poisoned, record};

struct SinkInAWorld {
    world: World,
    delivery: Delivery,
    handler: FlakyHandler,
    drivers: Vec<AbortHandle>,
    held: Option<RuleId>,
    broken: Option<RuleId>,
}

impl SinkInAWorld {
    fn new(delivery: Delivery) -> Self {
        let world = World::new(&["odd", "even"]);
        world.fault(
            Rule::on(Method::Publish)
                .when(is_poisoned)
                .then(Fault::Answer(Answer::new(
                    Code::InvalidArgument,
                    "does not match the schema",
                ))),
        );
        Self {
            world,
            delivery,
            handler: FlakyHandler::new(number_of),
            drivers: Vec::new(),
            held: None,
            broken: None,
        }
    }

    fn end(&self, rule: Option<RuleId>) {
        if let Some(rule) = rule {
            self.world.emulator.faults().remove(rule);
        }
    }
}

fn number_of(rejected: &Rejected) -> u64 {
    let message = PubsubMessage::decode(rejected.payload.clone().unwrap()).unwrap();
    let text = String::from_utf8(message.data.to_vec()).unwrap();
    text.trim_end_matches(char::from(POISON)).parse().unwrap()
}

fn topic_of(number: u64) -> &'static str {
    if number % 2 == 1 { "odd" } else { "even" }
}

impl Harness for SinkInAWorld {
    type Connector = PubsubSink<Record>;

    async fn make(&mut self, restored: Vec<Restored<SinkState>>) -> Self::Connector {
        let (sink, driver) = self
            .world
            .builder()
            .delivery(self.delivery)
            .on_rejected(self.handler.clone())
            .restore(restored)
            .build_with_driver()
            .unwrap();
        self.drivers
            .push(Handle::current().spawn(driver).abort_handle());
        sink
    }

    fn restored(connector: &mut Self::Connector) -> Receipt<Committed> {
        connector.restored()
    }

    async fn crash(&mut self, connector: Self::Connector) {
        for driver in self.drivers.drain(..) {
            driver.abort();
        }
        self.world.emulator.drop_connections();
        tokio::task::yield_now().await;
        drop(connector);
    }

    async fn close(mut connector: Self::Connector) {
        connector.close().await.unwrap();
    }

    async fn bounded<F: Future>(&mut self, future: F) -> Option<F::Output> {
        tokio::time::timeout(Duration::from_secs(60), future)
            .await
            .ok()
    }

    async fn let_time_pass(&mut self) {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    async fn outside(&mut self) -> Vec<u64> {
        let stored = [self.world.stored("odd"), self.world.stored("even")];
        stored
            .concat()
            .iter()
            .map(|text| text.parse().unwrap())
            .collect()
    }

    async fn hold(&mut self, hold: Hold) {
        let odd = full("odd");
        let rule = Rule::on(Method::Publish)
            .when(move |call| hold != Hold::Odd || call.resource() == Some(&odd));
        let before = self.held.take();
        self.end(before);
        if hold != Hold::Nothing {
            self.held = Some(self.world.emulator.faults().add(rule.then(Fault::Never)));
        }
    }

    async fn broken(&mut self, broken: bool) {
        let before = self.broken.take();
        self.end(before);
        if broken {
            let denied = Fault::answer(Code::PermissionDenied, "not yours");
            let rule = Rule::on(Method::Publish).then(denied);
            self.broken = Some(self.world.emulator.faults().add(rule));
        }
    }
}

impl SinkHarness for SinkInAWorld {
    type Record = Record;
    type Error = SinkError;

    const MERGES_STATES: bool = true;

    fn record(&mut self, number: u64) -> Record {
        record(topic_of(number), number.to_string())
    }

    fn refused(&mut self, number: u64) -> Record {
        let refused = record(topic_of(number), format!("{number}{}", char::from(POISON)));
        if self.delivery == Delivery::Flush {
            return refused;
        }
        Record {
            // Refused when it is staged: the service sees nothing before the commit.
            message: refused.message.attribute("google-reserved", "x"),
            to: refused.to,
        }
    }

    async fn handled(&mut self) -> Vec<u64> {
        self.handler.durable()
    }

    async fn fail_next_flush(&mut self) {
        self.handler.fail_next_flush();
    }
}

mod flushing {
    use super::{Delivery, SinkInAWorld};

    connector_core::conformance_tests! {
        #[tokio::test(start_paused = true)]
        flush_sink: SinkInAWorld::new(Delivery::Flush)
    }
}

mod staged {
    use super::{Delivery, SinkInAWorld};

    connector_core::conformance_tests! {
        #[tokio::test(start_paused = true)]
        staged_sink: SinkInAWorld::new(Delivery::Staged)
    }
}
