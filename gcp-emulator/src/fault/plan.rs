//! The rules in force.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::call::Call;
use crate::cloudtasks::proto::Task;
use crate::cloudtasks::state::Judged;
use crate::fault::rule::Condition;
use crate::fault::{Answer, Course, Fault, Rule, Trigger};
use crate::pubsub::proto::ReceivedMessage;

/// An ordered list of rules; the first one that matches a call decides about it.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan {
    rules: Vec<Rule>,
}

impl FaultPlan {
    /// A plan under which nothing goes wrong.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule behind those already there.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }
}

/// Names a rule of a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(u64);

/// The rules of a running server: rules can be added, counted and taken away while it runs.
///
/// Clones are handles to the same rules.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    rules: Vec<Active>,
    next: u64,
    retired: std::collections::BTreeMap<RuleId, u64>,
}

#[derive(Debug)]
struct Active {
    id: RuleId,
    rule: Rule,
    seen: u64,
    fired: u64,
}

impl Faults {
    pub(crate) fn new(plan: FaultPlan) -> Self {
        let faults = Self::default();
        for rule in plan.rules {
            let _id = faults.add(rule);
        }
        faults
    }

    /// Adds a rule behind those in force.
    pub fn add(&self, rule: Rule) -> RuleId {
        let mut inner = self.lock();
        let id = RuleId(inner.next);
        inner.next += 1;
        inner.rules.push(Active {
            id,
            rule,
            seen: 0,
            fired: 0,
        });
        id
    }

    /// Takes a rule away. True when it was in force.
    pub fn remove(&self, id: RuleId) -> bool {
        let mut inner = self.lock();
        let Some(place) = inner.rules.iter().position(|active| active.id == id) else {
            return false;
        };
        let active = inner.rules.remove(place);
        inner.retired.insert(id, active.fired);
        true
    }

    /// Takes every rule away.
    pub fn clear(&self) {
        let mut inner = self.lock();
        let gone: Vec<Active> = inner.rules.drain(..).collect();
        for active in gone {
            inner.retired.insert(active.id, active.fired);
        }
    }

    /// How many calls met the fault of a rule, also after it was taken away.
    #[must_use]
    pub fn fired(&self, id: RuleId) -> u64 {
        let inner = self.lock();
        inner
            .rules
            .iter()
            .find(|active| active.id == id)
            .map(|active| active.fired)
            .or_else(|| inner.retired.get(&id).copied())
            .unwrap_or(0)
    }

    /// What the first matching rule makes of a call.
    pub(crate) fn decide(&self, call: &Call) -> Course {
        let opening = call.stream.is_none();
        let matches = |rule: &Rule| {
            let triggered = match rule.trigger {
                Trigger::Call(method) => opening && method == call.method,
                Trigger::AnyCall => opening,
                Trigger::StreamRequest => !opening,
                Trigger::Delivery | Trigger::Task => false,
            };
            triggered
                && match &rule.condition {
                    Condition::Always => true,
                    Condition::Call(holds) => holds(call),
                    Condition::Delivery(_) | Condition::Task(_) => false,
                }
        };
        let fault = self.lock().first(matches);
        fault.map_or(Course::Serve, |fault| Course::of(fault, call))
    }

    /// When the delivered message shall become available again in spite of its lease.
    pub(crate) fn redelivery(&self, subscription: &str, got: &ReceivedMessage) -> Option<Duration> {
        let matches = |rule: &Rule| {
            rule.trigger == Trigger::Delivery
                && match &rule.condition {
                    Condition::Always => true,
                    Condition::Call(_) | Condition::Task(_) => false,
                    Condition::Delivery(holds) => holds(subscription, got),
                }
        };
        let fault = self.lock().first(matches)?;
        if let Fault::Redeliver(after) = fault {
            Some(after)
        } else {
            None
        }
    }

    /// What the first matching rule makes of a task about to be created.
    pub(crate) fn judge(&self, task: Option<&Task>) -> Judged {
        let matches = |rule: &Rule| {
            rule.trigger == Trigger::Task
                && match &rule.condition {
                    Condition::Always => true,
                    Condition::Call(_) | Condition::Delivery(_) => false,
                    Condition::Task(holds) => task.is_some_and(|task| holds(task)),
                }
        };
        let (answer, created) = match self.lock().first(matches) {
            Some(Fault::Answer(answer)) => (answer, false),
            Some(Fault::AfterEffect(fault)) => {
                let Fault::Answer(answer) = *fault else {
                    return Judged::Pass;
                };
                (answer, true)
            }
            // The others concern calls.
            Some(_) | None => return Judged::Pass,
        };
        let Answer { code, message, .. } = answer;
        if created {
            Judged::CreatedYetRefused { code, message }
        } else {
            Judged::Refused { code, message }
        }
    }

    /// Whether any rule looks at deliveries, so that the others need not be asked per message.
    pub(crate) fn watches_deliveries(&self) -> bool {
        self.lock()
            .rules
            .iter()
            .any(|active| active.rule.trigger == Trigger::Delivery)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A predicate of a test may panic while the rules are locked; they stay usable.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn first(&mut self, matches: impl Fn(&Rule) -> bool) -> Option<Fault> {
        for active in &mut self.rules {
            if active.rule.times.is_some_and(|times| active.fired >= times)
                || !matches(&active.rule)
            {
                continue;
            }
            active.seen += 1;
            if active.seen > active.rule.skip {
                active.fired += 1;
                return Some(active.rule.fault.clone());
            }
        }
        None
    }
}
