//! What a connector's author provides, so that the suite can put the connector to the test.

use std::{error::Error, future::Future};

use futures::{Sink, Stream};

use crate::{Checkpoint, Committed, Receipt, Restored};

/// The state type of a harness's connector.
pub type StateOf<H> = <<H as Harness>::Connector as Checkpoint>::State;

/// Whose requests the outside service leaves waiting at the door.
///
/// A request that is held has *no effect yet*: the service evaluates and answers it when the hold
/// ends. A held request that its connector gives up (a time-out of its own), or whose connector
/// [crashes](Harness::crash), never has an effect.
/// For a source only acknowledgements are held, deliveries and lease extensions go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a harness has to make every hold there is"
)]
pub enum Hold {
    /// The service answers at once.
    #[default]
    Nothing,
    /// Every request waits.
    Everything,
    /// For sinks only: requests to the destination of odd numbers wait, those to the destination
    /// of even numbers are answered.
    Odd,
}

/// A small world: an outside service, and connectors that talk to it.
///
/// The suite makes one harness per clause, through the expression given to
/// [`conformance_tests!`](crate::conformance_tests). Records are numbers, so that the suite can
/// tell them apart whatever the connector really carries. Nothing here needs a particular runtime:
/// whatever waits, waits through [`bounded`](Self::bounded) or
/// [`let_time_pass`](Self::let_time_pass). Under paused time both cost nothing.
///
/// All waiting of a harness is shorter than a lease of its source; a lease ends only by
/// [`SourceHarness::lapse`].
pub trait Harness {
    /// The connector under test.
    type Connector: Checkpoint;

    /// Builds a connector in this world and starts its driver.
    ///
    /// `restored` goes to the builder's `restore`: nothing for a first start, one state for an
    /// ordinary restart. A source is given several when the job had several readers; a sink only
    /// when [`SinkHarness::MERGES_STATES`] says that it can take them.
    fn make(
        &mut self,
        restored: Vec<Restored<StateOf<Self>>>,
    ) -> impl Future<Output = Self::Connector>;

    /// The receipt of what a restored connector commits by itself, its `restored()`.
    fn restored(connector: &mut Self::Connector) -> Receipt<Committed>;

    /// Ends a connector as a killed process ends: from here on nothing of it reaches the service,
    /// no release, no acknowledgement, nothing that was held or queued.
    fn crash(&mut self, connector: Self::Connector) -> impl Future<Output = ()>;

    /// Ends a connector in good order: its `close().await`.
    fn close(connector: Self::Connector) -> impl Future<Output = ()>;

    /// Waits for `future`, or answers `None` when it takes suspiciously long.
    ///
    /// With tokio: `tokio::time::timeout(LIMIT, future).await.ok()`. The limit is longer than
    /// anything the connector does with a healthy service, retries included, and shorter than a
    /// lease.
    fn bounded<F: Future>(&mut self, future: F) -> impl Future<Output = Option<F::Output>>;

    /// Lets the time pass in which a connector does whatever it is going to do unasked.
    ///
    /// The suite looks at the outside afterwards, to see that something did *not* happen.
    fn let_time_pass(&mut self) -> impl Future<Output = ()>;

    /// What is visible outside.
    ///
    /// For a source the numbers whose message the service knows as acknowledged, in any order
    /// (for a message of several records all of them). For a sink the numbers that the service
    /// took, in the order of arrival *per destination*, repetitions included.
    fn outside(&mut self) -> impl Future<Output = Vec<u64>>;

    /// Makes the service leave requests waiting, or let all of them go on.
    fn hold(&mut self, hold: Hold) -> impl Future<Output = ()>;

    /// Makes the service refuse everything in a way that the connector takes as terminal (a
    /// missing subscription, a denied permission), or ends that.
    fn broken(&mut self, broken: bool) -> impl Future<Output = ()>;
}

/// A harness around a source.
pub trait SourceHarness:
    Harness<Connector: Stream<Item = Result<Self::Message, Self::Error>> + Unpin>
{
    /// What the source hands out.
    type Message;
    /// The source's terminal error.
    type Error: Error;

    /// Whether one message may decode to several records. Then
    /// [`publish_group`](Self::publish_group) is called.
    const SPLITS_MESSAGES: bool = false;

    /// The number that a record was published with.
    fn number(message: &Self::Message) -> u64;

    /// Publishes one message per number.
    fn publish(&mut self, numbers: &[u64]) -> impl Future<Output = ()>;

    /// Publishes one message that decodes to one record per number, in this order.
    ///
    /// Called only with [`SPLITS_MESSAGES`](Self::SPLITS_MESSAGES).
    ///
    /// # Panics
    ///
    /// The provided body always panics: a harness that claims `SPLITS_MESSAGES` replaces it.
    fn publish_group(&mut self, numbers: &[u64]) -> impl Future<Output = ()> {
        let count = numbers.len();
        async move { panic!("a harness with SPLITS_MESSAGES publishes {count} records as one") }
    }

    /// Ends every lease now, also those of living connectors, so that the service delivers again
    /// what is not acknowledged. The ids under which it was delivered before are worthless then.
    fn lapse(&mut self) -> impl Future<Output = ()>;
}

/// A harness around a sink, in either mode.
///
/// Records with odd numbers go to one destination and those with even numbers to another, so that
/// the suite can hold one of them.
pub trait SinkHarness: Harness<Connector: Sink<Self::Record, Error = Self::Error> + Unpin> {
    /// What the sink takes.
    type Record;
    /// The sink's terminal error.
    type Error: Error;

    /// Whether [`Harness::make`] can take several states, dropping items that more than one names.
    const MERGES_STATES: bool = false;

    /// A record that the service takes.
    fn record(&mut self, number: u64) -> Self::Record;

    /// A record that is refused for a reason of its own, by the serializer, a check or the service,
    /// and so goes to the failure handler.
    fn refused(&mut self, number: u64) -> Self::Record;

    /// What the failure handler has made durable, as numbers. The handler's verdict is
    /// [`Verdict::Drop`](crate::Verdict::Drop); [`FlakyHandler`](super::FlakyHandler) is one.
    fn handled(&mut self) -> impl Future<Output = Vec<u64>>;

    /// Makes the failure handler's next flush fail.
    fn fail_next_flush(&mut self) -> impl Future<Output = ()>;
}
