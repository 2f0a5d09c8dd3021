//! The harness around the reference sink.

use std::future::Future;

use connector_core::{
    Committed, Receipt, Rejected, Restored,
    conformance::{FlakyHandler, Harness, Hold, SinkHarness},
};

use super::{
    Bug,
    crew::Crew,
    push_service::PushService,
    sink::{FakeSink, Mode, Record, Setup, SinkEnded, State},
};

/// More records than any clause feeds before it commits.
const STAGE: usize = 16;

pub(crate) struct FakeSinkHarness {
    mode: Mode,
    bug: Option<Bug>,
    service: PushService,
    handler: FlakyHandler,
    crew: Crew,
    incarnations: u64,
}

impl FakeSinkHarness {
    pub(crate) fn new(mode: Mode, bug: Option<Bug>) -> Self {
        Self {
            mode,
            bug,
            service: PushService::default(),
            handler: FlakyHandler::new(number_of),
            crew: Crew::default(),
            incarnations: 0,
        }
    }
}

fn number_of(rejected: &Rejected) -> u64 {
    let payload = rejected.payload.as_deref().unwrap_or_default();
    std::str::from_utf8(payload).unwrap().parse().unwrap()
}

impl Harness for FakeSinkHarness {
    type Connector = FakeSink;

    async fn make(&mut self, restored: Vec<Restored<State>>) -> FakeSink {
        self.incarnations += 1;
        let setup = Setup {
            mode: self.mode,
            bug: self.bug,
            stage: STAGE,
            incarnation: self.incarnations,
            handler: self.handler.clone(),
        };
        let sink = FakeSink::new(&self.service, setup, restored);
        self.crew.join(sink.core());
        sink
    }

    fn restored(sink: &mut FakeSink) -> Receipt<Committed> {
        sink.take_restored()
    }

    async fn crash(&mut self, sink: FakeSink) {
        sink.crash();
    }

    fn close(sink: FakeSink) -> impl Future<Output = ()> {
        sink.close();
        std::future::ready(())
    }

    async fn bounded<F: Future>(&mut self, future: F) -> Option<F::Output> {
        self.crew.bounded(future)
    }

    async fn let_time_pass(&mut self) {
        self.crew.let_time_pass();
    }

    async fn outside(&mut self) -> Vec<u64> {
        self.service.taken()
    }

    async fn hold(&mut self, hold: Hold) {
        self.service.hold(hold);
    }

    async fn broken(&mut self, broken: bool) {
        self.service.set_broken(broken);
    }
}

impl SinkHarness for FakeSinkHarness {
    type Record = Record;
    type Error = SinkEnded;

    const MERGES_STATES: bool = true;

    fn record(&mut self, number: u64) -> Record {
        Record::Good(number)
    }

    fn refused(&mut self, number: u64) -> Record {
        Record::Refused(number)
    }

    async fn handled(&mut self) -> Vec<u64> {
        self.handler.durable()
    }

    async fn fail_next_flush(&mut self) {
        self.handler.fail_next_flush();
    }
}
