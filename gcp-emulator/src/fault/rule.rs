//! When a fault happens.

use std::fmt;
use std::sync::Arc;

use crate::call::Call;
use crate::cloudtasks::proto::Task;
use crate::fault::Fault;
use crate::method::Method;
use crate::pubsub::proto::ReceivedMessage;

/// What a [`Rule`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// A call of one method; of a pull stream the request that opens it.
    Call(Method),
    /// A call of any method.
    AnyCall,
    /// A later request on an open pull stream.
    StreamRequest,
    /// A message about to be delivered, by pull or on a stream.
    Delivery,
    /// A task about to be created, alone or in a batch.
    Task,
}

/// A condition and the [`Fault`] that happens when it holds.
///
/// ```
/// use gcp_emulator::{Code, Fault, Method, Rule};
///
/// // The second and third publish are stored, and answered UNAVAILABLE.
/// let rule = Rule::on(Method::Publish)
///     .skip(1)
///     .times(2)
///     .then(Fault::answer(Code::Unavailable, "try again").after_effect());
/// # let _ = rule;
/// ```
#[derive(Clone)]
pub struct Rule {
    pub(super) trigger: Trigger,
    pub(super) condition: Condition,
    pub(super) skip: u64,
    pub(super) times: Option<u64>,
    pub(super) fault: Fault,
}

type CallCondition = dyn Fn(&Call) -> bool + Send + Sync;
type TaskCondition = dyn Fn(&Task) -> bool + Send + Sync;
type DeliveryCondition = dyn Fn(&str, &ReceivedMessage) -> bool + Send + Sync;

#[derive(Clone)]
pub(super) enum Condition {
    Always,
    Call(Arc<CallCondition>),
    Delivery(Arc<DeliveryCondition>),
    Task(Arc<TaskCondition>),
}

impl Rule {
    /// A rule for the calls of `method`. Until [`then`](Self::then) it lets them pass.
    #[must_use]
    pub fn on(method: Method) -> Self {
        Self::of(Trigger::Call(method))
    }

    /// A rule for calls of every method.
    #[must_use]
    pub fn on_any() -> Self {
        Self::of(Trigger::AnyCall)
    }

    /// A rule for the later requests of pull streams. The answers [`Fault::Answer`],
    /// [`Fault::ResetStream`] and the like end the stream, [`Fault::OkWithoutEffect`] ignores the
    /// request.
    #[must_use]
    pub fn on_stream_request() -> Self {
        Self::of(Trigger::StreamRequest)
    }

    /// A rule for messages about to be delivered, for [`Fault::Redeliver`].
    #[must_use]
    pub fn on_delivery() -> Self {
        Self::of(Trigger::Delivery)
    }

    /// A rule for single tasks about to be created, by `CreateTask` or in a batch, whose call goes on:
    /// for [`Fault::Answer`], before or [after](Fault::after_effect) the task is created.
    #[must_use]
    pub fn on_task() -> Self {
        Self::of(Trigger::Task)
    }

    fn of(trigger: Trigger) -> Self {
        Self {
            trigger,
            condition: Condition::Always,
            skip: 0,
            times: None,
            fault: Fault::Pass,
        }
    }

    /// Narrows the rule to calls for which `holds` is true.
    #[must_use]
    pub fn when(mut self, holds: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        self.condition = Condition::Call(Arc::new(holds));
        self
    }

    /// Narrows a rule for deliveries to those for which `holds` is true of the subscription's name
    /// and the message.
    #[must_use]
    pub fn when_delivered(
        mut self,
        holds: impl Fn(&str, &ReceivedMessage) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.condition = Condition::Delivery(Arc::new(holds));
        self
    }

    /// Narrows a rule for tasks to those for which `holds` is true of the task as it was sent.
    #[must_use]
    pub fn when_task(mut self, holds: impl Fn(&Task) -> bool + Send + Sync + 'static) -> Self {
        self.condition = Condition::Task(Arc::new(holds));
        self
    }

    /// Leaves the first `matches` matching calls alone. Default 0.
    #[must_use]
    pub fn skip(mut self, matches: u64) -> Self {
        self.skip = matches;
        self
    }

    /// Stops after `matches` calls met the fault. Default: never stops.
    #[must_use]
    pub fn times(mut self, matches: u64) -> Self {
        self.times = Some(matches);
        self
    }

    /// Stops after one call met the fault.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// What happens to the matching calls.
    #[must_use]
    pub fn then(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("trigger", &self.trigger)
            .field("conditional", &!matches!(self.condition, Condition::Always))
            .field("skip", &self.skip)
            .field("times", &self.times)
            .field("fault", &self.fault)
            .finish()
    }
}
