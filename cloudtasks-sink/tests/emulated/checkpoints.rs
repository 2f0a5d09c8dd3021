//! The sink as a part of its host's checkpoints, clause by clause.

use std::time::{Duration, SystemTime};

use cloudtasks_sink::{Batch, CloudTasksSink, Delivery, HttpTask, SinkError, SinkState};
use connector_core::conformance::{FlakyHandler, Harness, Hold, SinkHarness};
use connector_core::{Committed, Receipt, Rejected, Restored};
use gcp_emulator::{Code, Fault, Method, Rule, RuleId};

use crate::world::{Q1, Q2, World, body, queue};

/// A record of the suite: its number, and whether a check refuses it.
#[derive(Debug, Clone)]
struct Numbered {
    number: u64,
    refused: bool,
}

struct Tasks {
    world: World,
    handler: FlakyHandler,
    /// How many tasks one call creates.
    batch: Option<Batch>,
    delivery: Delivery,
    rules: Vec<RuleId>,
    broken: Vec<RuleId>,
    /// The driver of the connector that lives, to be killed with it.
    driver: Option<tokio::task::AbortHandle>,
}

impl Tasks {
    fn new(batch: Option<Batch>) -> Self {
        Self::of(batch, Delivery::Flush)
    }

    fn staged(batch: Option<Batch>) -> Self {
        let name_retention = Duration::from_secs(3_600);
        Self::of(batch, Delivery::Staged { name_retention })
    }

    fn of(batch: Option<Batch>, delivery: Delivery) -> Self {
        Self {
            world: World::new(),
            handler: FlakyHandler::new(number_of),
            batch,
            delivery,
            rules: Vec::new(),
            broken: Vec::new(),
            driver: None,
        }
    }
}

/// The number that a rejected record carries in its task's body.
fn number_of(rejected: &Rejected) -> u64 {
    use prost::Message;
    let payload = rejected.payload.clone().unwrap();
    let task = gcp_emulator::cloudtasks::proto::Task::decode(payload).unwrap();
    match task.message_type {
        Some(gcp_emulator::cloudtasks::proto::task::MessageType::HttpRequest(request)) => {
            String::from_utf8(request.body.to_vec())
                .unwrap()
                .parse()
                .unwrap()
        }
        other => panic!("{other:?}"),
    }
}

impl Harness for Tasks {
    type Connector = CloudTasksSink<Numbered>;

    async fn make(&mut self, restored: Vec<Restored<SinkState>>) -> Self::Connector {
        let mut builder = CloudTasksSink::builder(|record: &Numbered| {
            let mut task = HttpTask::post("https://h/")?.body(record.number.to_string());
            if record.refused {
                task = task.header("Host", "reserved");
            }
            Ok(Some(task))
        })
        .resolve(|record: &Numbered| queue(if record.number % 2 == 1 { Q1 } else { Q2 }))
        .endpoint(self.world.endpoint())
        .on_rejected(self.handler.clone())
        .delivery(self.delivery)
        .wall_clock(follow(&self.world))
        .restore(restored);
        if let Some(batch) = self.batch {
            builder = builder.batching(batch);
        }
        let (sink, driver) = builder.build_with_driver().unwrap();
        self.driver = Some(tokio::spawn(driver).abort_handle());
        sink
    }

    fn restored(connector: &mut Self::Connector) -> Receipt<Committed> {
        connector.restored()
    }

    async fn crash(&mut self, connector: Self::Connector) {
        // The driver dies first: nothing that the handle's drop asks for is done.
        if let Some(driver) = self.driver.take() {
            driver.abort();
        }
        tokio::task::yield_now().await;
        self.world.emulator.drop_connections();
        drop(connector);
    }

    async fn close(mut connector: Self::Connector) {
        match connector.close().await {
            // A staged sink says what the host never committed; that is for the suite to do.
            Ok(()) | Err(SinkError::Uncommitted { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }

    async fn bounded<F: Future>(&mut self, future: F) -> Option<F::Output> {
        tokio::time::timeout(Duration::from_secs(300), future)
            .await
            .ok()
    }

    async fn let_time_pass(&mut self) {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }

    async fn outside(&mut self) -> Vec<u64> {
        let numbers = |queue| -> Vec<u64> {
            self.world
                .created(queue)
                .iter()
                .map(|task| body(task).parse().unwrap())
                .collect()
        };
        [numbers(Q1), numbers(Q2)].concat()
    }

    async fn hold(&mut self, hold: Hold) {
        let faults = self.world.emulator.faults();
        for rule in self.rules.drain(..) {
            faults.remove(rule);
        }
        let held: &[&'static str] = match hold {
            Hold::Everything => &[Q1, Q2],
            Hold::Odd => &[Q1],
            _ => &[],
        };
        for queue in held {
            // A request that waits has no effect; the sink gives up on it after its attempt's
            // deadline and asks again, so that it is answered once the hold has ended.
            for method in [Method::CreateTask, Method::BatchCreateTasks] {
                let rule = Rule::on(method)
                    .when(|call| call.resource() == Some(*queue))
                    .then(Fault::Never);
                self.rules.push(faults.add(rule));
            }
        }
    }

    async fn broken(&mut self, broken: bool) {
        let faults = self.world.emulator.faults();
        for rule in self.broken.drain(..) {
            faults.remove(rule);
        }
        if broken {
            for method in [Method::CreateTask, Method::BatchCreateTasks] {
                // A staged sink waits for permission, which comes back; not for a method.
                let denied = Fault::answer(Code::Unimplemented, "no such method");
                self.broken.push(faults.add(Rule::on(method).then(denied)));
            }
        }
    }
}

/// A time of day that goes on with the server's.
fn follow(world: &World) -> impl Fn() -> SystemTime + Send + Sync + 'static {
    let noon = SystemTime::UNIX_EPOCH + world.emulator.now().as_unix();
    let started = tokio::time::Instant::now();
    move || noon + started.elapsed()
}

impl SinkHarness for Tasks {
    type Record = Numbered;
    type Error = SinkError;

    const MERGES_STATES: bool = true;

    fn record(&mut self, number: u64) -> Numbered {
        Numbered {
            number,
            refused: false,
        }
    }

    fn refused(&mut self, number: u64) -> Numbered {
        Numbered {
            number,
            refused: true,
        }
    }

    async fn handled(&mut self) -> Vec<u64> {
        self.handler.durable()
    }

    async fn fail_next_flush(&mut self) {
        self.handler.fail_next_flush();
    }
}

connector_core::conformance_tests! {
    #[tokio::test(start_paused = true)]
    flush_sink: Tasks::new(None)
}

mod staged {
    use super::Tasks;

    connector_core::conformance_tests! {
        #[tokio::test(start_paused = true)]
        staged_sink: Tasks::staged(None)
    }
}

mod staged_in_batches {
    use super::{Batch, Tasks};

    connector_core::conformance_tests! {
        #[tokio::test(start_paused = true)]
        staged_sink: Tasks::staged(Some(Batch::up_to(3)))
    }
}

mod in_batches {
    use super::{Batch, Tasks};

    connector_core::conformance_tests! {
        #[tokio::test(start_paused = true)]
        flush_sink: Tasks::new(Some(Batch::up_to(3)))
    }
}
