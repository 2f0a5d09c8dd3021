//! Performs what a start wants done, and tells it what came of it.

use std::{future::Future, time::Duration};

use connector_core::Cause;
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use gcp_wire::{SnapshotName, SubscriptionName, TopicName};

use super::{
    PrepareError, Prepared, StoreSilent,
    admin::{Admin, Created, TopicStanding},
    facts::Facts,
    notice,
    procedure::{Effect, Procedure},
};
use crate::start::{SeekTarget, StartRecord, StartStore};

/// What came of a call.
enum Answer {
    Described(SubscriptionName, Option<Facts>),
    Topic(TopicName, TopicStanding),
    Snapshot(SnapshotName, Option<String>),
    Created(SubscriptionName, Created),
    Sought(SubscriptionName, SeekTarget),
}

/// A start that is under way.
pub(super) struct Work<'a> {
    procedure: Procedure,
    admin: &'a Admin,
    patience: Duration,
    calls: FuturesUnordered<BoxFuture<'a, Result<Answer, PrepareError>>>,
}

impl<'a> Work<'a> {
    pub(super) fn new(procedure: Procedure, admin: &'a Admin, patience: Duration) -> Self {
        Self {
            procedure,
            admin,
            patience,
            calls: FuturesUnordered::new(),
        }
    }

    pub(super) async fn run<S: StartStore>(
        mut self,
        store: &mut S,
    ) -> Result<Prepared, PrepareError> {
        loop {
            while let Some(effect) = self.procedure.poll_effect() {
                self.perform(effect, store).await;
            }
            if let Some(outcome) = self.procedure.outcome() {
                return outcome;
            }
            match self.calls.next().await {
                Some(Ok(answer)) => self.answered(answer),
                Some(Err(error)) => self.procedure.handle_failed(error),
                None => unreachable!("a start that is not over waits for an answer"),
            }
        }
    }

    async fn perform<S: StartStore>(&mut self, effect: Effect, store: &mut S) {
        let admin = self.admin;
        match effect {
            Effect::Tell(notice) => notice::tell(&notice),
            // Nothing else is under way while the store is asked.
            Effect::Load => match within(self.patience, store.load()).await {
                Ok(record) => self.procedure.handle_loaded(record),
                Err(cause) => self
                    .procedure
                    .handle_failed(PrepareError::Unreadable { cause }),
            },
            Effect::Save(record) => self.save(store, record).await,
            Effect::Describe {
                subscription,
                created,
            } => self.call(async move {
                let facts = admin.describe(&subscription, created).await?;
                Ok(Answer::Described(subscription, facts))
            }),
            Effect::LookAtTopic(topic) => self.call(async move {
                let standing = admin.topic(&topic).await?;
                Ok(Answer::Topic(topic, standing))
            }),
            Effect::LookAtSnapshot(snapshot) => self.call(async move {
                let topic = admin.snapshot(&snapshot).await?;
                Ok(Answer::Snapshot(snapshot, topic))
            }),
            Effect::Create {
                subscription,
                creation,
            } => self.call(async move {
                let wanted = creation.subscription(&subscription);
                let created = admin
                    .create(&subscription, creation.topic(), &wanted)
                    .await?;
                Ok(Answer::Created(subscription, created))
            }),
            Effect::Seek {
                subscription,
                target,
                created,
            } => self.call(async move {
                admin.seek(&subscription, &target, created).await?;
                Ok(Answer::Sought(subscription, target))
            }),
        }
    }

    async fn save<S: StartStore>(&mut self, store: &mut S, record: StartRecord) {
        let done = record.is_done();
        match within(self.patience, store.save(record)).await {
            Ok(()) => self.procedure.handle_saved(),
            Err(cause) if done => {
                self.procedure
                    .handle_failed(PrepareError::DoneNotSaved { cause });
            }
            Err(cause) => {
                self.procedure
                    .handle_failed(PrepareError::IntentNotSaved { cause });
            }
        }
    }

    fn call(&self, call: impl Future<Output = Result<Answer, PrepareError>> + Send + 'a) {
        self.calls.push(Box::pin(call));
    }

    fn answered(&mut self, answer: Answer) {
        let procedure = &mut self.procedure;
        match answer {
            Answer::Described(subscription, facts) => {
                procedure.handle_described(subscription, facts);
            }
            Answer::Topic(topic, standing) => procedure.handle_topic(topic, standing),
            Answer::Snapshot(snapshot, topic) => procedure.handle_snapshot(snapshot, topic),
            Answer::Created(subscription, created) => {
                procedure.handle_created(subscription, created);
            }
            Answer::Sought(subscription, target) => procedure.handle_sought(subscription, target),
        }
    }
}

/// What the store answers in time.
async fn within<T, E>(
    after: Duration,
    asked: impl Future<Output = Result<T, E>> + Send,
) -> Result<T, Cause>
where
    E: std::error::Error + Send + Sync + 'static,
    T: Send,
{
    match tokio::time::timeout(after, asked).await {
        Ok(answer) => answer.map_err(Cause::new),
        Err(_) => Err(Cause::new(StoreSilent { after })),
    }
}
