//! The harness around the reference source.

use std::future::Future;

use connector_core::{
    Committed, Receipt, Restored,
    conformance::{Harness, Hold, SourceHarness},
};

use super::{
    Bug,
    crew::Crew,
    pull_service::PullService,
    source::{FakeSource, SourceEnded, State},
};

pub(crate) struct FakeSourceHarness {
    bug: Option<Bug>,
    service: PullService,
    crew: Crew,
}

impl FakeSourceHarness {
    pub(crate) fn new(bug: Option<Bug>) -> Self {
        Self {
            bug,
            service: PullService::default(),
            crew: Crew::default(),
        }
    }
}

impl Harness for FakeSourceHarness {
    type Connector = FakeSource;

    async fn make(&mut self, restored: Vec<Restored<State>>) -> FakeSource {
        let source = FakeSource::new(&self.service, self.bug, restored);
        self.crew.join(source.core());
        source
    }

    fn restored(source: &mut FakeSource) -> Receipt<Committed> {
        source.take_restored()
    }

    async fn crash(&mut self, source: FakeSource) {
        source.crash();
    }

    fn close(source: FakeSource) -> impl Future<Output = ()> {
        source.close();
        std::future::ready(())
    }

    async fn bounded<F: Future>(&mut self, future: F) -> Option<F::Output> {
        self.crew.bounded(future)
    }

    async fn let_time_pass(&mut self) {
        self.crew.let_time_pass();
    }

    async fn outside(&mut self) -> Vec<u64> {
        self.service.acknowledged()
    }

    async fn hold(&mut self, hold: Hold) {
        self.service.hold(hold);
    }

    async fn broken(&mut self, broken: bool) {
        self.service.set_broken(broken);
    }
}

impl SourceHarness for FakeSourceHarness {
    type Message = u64;
    type Error = SourceEnded;

    const SPLITS_MESSAGES: bool = true;

    fn number(message: &u64) -> u64 {
        *message
    }

    async fn publish(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.service.publish(vec![*number]);
        }
    }

    async fn publish_group(&mut self, numbers: &[u64]) {
        self.service.publish(numbers.to_vec());
    }

    async fn lapse(&mut self) {
        self.service.lapse();
    }
}
