//! A service, a store, and what happened to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use gcp_wire::{Code, RpcError, SnapshotName, SubscriptionName, TopicName, proto::pubsub};

use crate::{
    creation::SubscriptionCreation,
    decode::DecodeFailure,
    plan::SplitPlan,
    prepare::{
        PrepareError, Prepared,
        admin::{Created, Step, TopicStanding},
        facts::Facts,
        notice::Notice,
        procedure::{Effect, Procedure},
        wishes::Wishes,
    },
    start::{SeekId, SeekTarget, StartRecord},
};

pub(super) fn subscription(number: usize) -> SubscriptionName {
    SubscriptionName::new("demo", &format!("sub-{number}")).unwrap()
}

pub(super) fn topic(id: &str) -> TopicName {
    TopicName::new("demo", id).unwrap()
}

/// Settings of a subscription of `orders`, changed.
pub(super) fn facts(change: impl FnOnce(&mut pubsub::Subscription)) -> Facts {
    let mut settings = pubsub::Subscription {
        topic: topic("orders").to_string(),
        ..pubsub::Subscription::default()
    };
    change(&mut settings);
    Facts::of(&settings)
}

pub(super) fn creation() -> SubscriptionCreation {
    SubscriptionCreation::builder(topic("orders"))
        .build()
        .unwrap()
}

/// A job that continues with so many subscriptions.
pub(super) fn wishes(subscriptions: usize) -> Wishes {
    Wishes {
        plan: SplitPlan::new((0..subscriptions).map(subscription), 1).unwrap(),
        instance: "job".into(),
        moment: Duration::from_secs(1000),
        target: None,
        fresh: SeekId(1),
        creations: BTreeMap::new(),
        decode_failure: DecodeFailure::Fail,
    }
}

/// What happens to one effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is done and answered.
    Done,
    /// It has no effect, and is answered so that trying again does not help.
    Refused,
    /// The process dies before it has an effect.
    CrashBefore,
    /// It has its effect, and the process dies before the answer.
    CrashAfter,
}

/// A service with subscriptions of the topic `orders`, and a store.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) existing: BTreeMap<SubscriptionName, Facts>,
    pub(super) missing_topics: BTreeSet<TopicName>,
    /// Topics that may not be looked at.
    pub(super) hidden_topics: BTreeSet<TopicName>,
    pub(super) snapshots: BTreeMap<SnapshotName, String>,
    pub(super) stored: Option<StartRecord>,
    /// Subscriptions that appear between being missed and being created.
    pub(super) raced: BTreeMap<SubscriptionName, Facts>,
    pub(super) created: Vec<SubscriptionName>,
    /// Seeks that took effect, over all incarnations.
    pub(super) sought: Vec<(SubscriptionName, SeekTarget)>,
    pub(super) saves: usize,
    pub(super) notices: Vec<Notice>,
    /// In this incarnation.
    looked_at: BTreeSet<SubscriptionName>,
    sought_now: BTreeSet<SubscriptionName>,
}

impl World {
    /// With so many existing subscriptions.
    pub(super) fn of(subscriptions: usize) -> Self {
        Self {
            existing: (0..subscriptions)
                .map(|number| (subscription(number), facts(|_| {})))
                .collect(),
            ..Self::default()
        }
    }

    /// A start without faults, answered in order.
    pub(super) fn start(&mut self, wishes: Wishes) -> Result<Prepared, PrepareError> {
        self.incarnate(wishes, &mut |_| (0, Fate::Done))
            .expect("nobody dies")
    }

    /// A start whose `course` says which of so many waiting effects comes next, and what happens to
    /// it. `None` when the process died.
    pub(super) fn incarnate(
        &mut self,
        wishes: Wishes,
        course: &mut dyn FnMut(usize) -> (usize, Fate),
    ) -> Option<Result<Prepared, PrepareError>> {
        self.looked_at.clear();
        self.sought_now.clear();
        let planned = wishes.plan.subscriptions().to_vec();
        let mut procedure = Procedure::new(wishes);
        let mut waiting = Vec::new();
        loop {
            while let Some(effect) = procedure.poll_effect() {
                if let Effect::Tell(notice) = effect {
                    self.notices.push(notice);
                } else {
                    waiting.push(effect);
                }
            }
            if let Some(outcome) = procedure.outcome() {
                return Some(outcome);
            }
            assert!(!waiting.is_empty(), "the start stands still");
            assert!(waiting.len() <= super::super::AT_ONCE);
            let (which, fate) = course(waiting.len());
            let effect = waiting.remove(which % waiting.len());
            self.check(&planned, &effect);
            match fate {
                Fate::CrashBefore => return None,
                Fate::Refused => procedure.handle_failed(refusal()),
                Fate::CrashAfter => {
                    self.take_effect(&effect);
                    return None;
                }
                Fate::Done => {
                    self.take_effect(&effect);
                    self.answer(&mut procedure, effect);
                }
            }
        }
    }

    /// What must be so before anything is changed.
    fn check(&self, planned: &[SubscriptionName], effect: &Effect) {
        let all_looked_at = planned.iter().all(|one| self.looked_at.contains(one));
        match effect {
            Effect::Load | Effect::LookAtTopic(_) | Effect::LookAtSnapshot(_) | Effect::Tell(_) => {
            }
            Effect::Describe {
                subscription,
                created,
            } => {
                // Only what was found missing is looked at again: somebody has created it since.
                assert_eq!(*created, self.looked_at.contains(subscription));
            }
            Effect::Create { subscription, .. } => {
                assert!(all_looked_at, "created before all was looked at");
                assert!(planned.contains(subscription));
                assert!(self.sought_now.is_empty(), "created after a seek");
            }
            Effect::Save(record) => {
                assert!(all_looked_at, "recorded before all was looked at");
                self.check_all_there(planned);
                if let Some(stored) = self.stored.as_ref().filter(|stored| stored.is_done()) {
                    let news = stored.subscriptions() != record.subscriptions();
                    assert!(news, "a start that is over is recorded again");
                    assert!(record.is_done() && record.seek() == stored.seek());
                    return;
                }
                if record.is_done() && record.seek().is_some() {
                    let all_sought = planned.iter().all(|one| self.sought_now.contains(one));
                    assert!(all_sought, "done before all was sought");
                }
            }
            Effect::Seek { target, .. } => {
                assert!(all_looked_at, "sought before all was looked at");
                self.check_all_there(planned);
                let stored = self.stored.as_ref().expect("sought before it is recorded");
                assert!(!stored.is_done(), "sought after the start was over");
                assert_eq!(&stored.seek().unwrap().target, target);
            }
        }
    }

    fn check_all_there(&self, planned: &[SubscriptionName]) {
        for one in planned {
            assert!(self.existing.contains_key(one), "{one} is missing still");
        }
    }

    fn take_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Create {
                subscription,
                creation,
            } => {
                if let Some(facts) = self.raced.remove(subscription) {
                    self.existing.insert(subscription.clone(), facts);
                } else {
                    let made = Facts::of(&creation.subscription(subscription));
                    if self.existing.insert(subscription.clone(), made).is_none() {
                        self.created.push(subscription.clone());
                    }
                }
            }
            Effect::Save(record) => {
                self.saves += 1;
                self.stored = Some(record.clone());
            }
            Effect::Seek {
                subscription,
                target,
                ..
            } => {
                self.sought.push((subscription.clone(), target.clone()));
                let again = !self.sought_now.insert(subscription.clone());
                assert!(!again, "sought twice in one start");
            }
            Effect::Describe { subscription, .. } => {
                self.looked_at.insert(subscription.clone());
            }
            Effect::Load | Effect::LookAtTopic(_) | Effect::LookAtSnapshot(_) | Effect::Tell(_) => {
            }
        }
    }

    fn answer(&self, procedure: &mut Procedure, effect: Effect) {
        match effect {
            Effect::Load => procedure.handle_loaded(self.stored.clone()),
            Effect::Describe { subscription, .. } => {
                let found = self.existing.get(&subscription).cloned();
                procedure.handle_described(subscription, found);
            }
            Effect::LookAtTopic(topic) => {
                let standing = if self.hidden_topics.contains(&topic) {
                    TopicStanding::Unknown
                } else if self.missing_topics.contains(&topic) {
                    TopicStanding::Missing
                } else {
                    TopicStanding::There
                };
                procedure.handle_topic(topic, standing);
            }
            Effect::LookAtSnapshot(snapshot) => {
                let topic = self.snapshots.get(&snapshot).cloned();
                procedure.handle_snapshot(snapshot, topic);
            }
            Effect::Create { subscription, .. } => {
                let made = self.created.contains(&subscription);
                let created = match self.existing.get(&subscription) {
                    Some(facts) if made => Created::Made(facts.clone()),
                    _ => Created::Existed,
                };
                procedure.handle_created(subscription, created);
            }
            Effect::Save(_) => procedure.handle_saved(),
            Effect::Seek {
                subscription,
                target,
                ..
            } => procedure.handle_sought(subscription, target),
            Effect::Tell(_) => {}
        }
    }
}

pub(super) fn refusal() -> PrepareError {
    PrepareError::Refused {
        step: Step::describe(&subscription(0)),
        cause: RpcError::status("GetSubscription", Code::Unimplemented, "no"),
    }
}
