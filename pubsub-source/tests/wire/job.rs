//! A job that starts: what it keeps, and how it is prepared and read.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use gcp_emulator::Method;
use gcp_wire::{
    Connection, ConnectionOptions, Credentials,
    method::CREATE_TOPIC,
    proto::{self, pubsub::Topic},
};
use pubsub_source::{
    Endpoint, Preparation, Prepared, SourceBuilder, SplitPlan, StartRecord, StartStore,
    SubscriptionCreation, SubscriptionName, prepare,
};

use crate::world::*;

/// A place for a start's record that outlives the process, and fails when told.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Shelf>>);

#[derive(Default)]
struct Shelf {
    /// As a host keeps it: in bytes.
    record: Option<String>,
    fails: Option<Fails>,
}

/// What a store does not do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fails {
    Load,
    /// Saving a record of this kind: done or not. Nothing is saved.
    Save {
        done: bool,
    },
    /// Saving a record of this kind: it is saved, and an error answered.
    AfterSave {
        done: bool,
    },
    /// Nothing is ever answered.
    Answering,
}

#[derive(Debug)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the shelf is broken")
    }
}

impl std::error::Error for Broken {}

impl Kept {
    pub fn record(&self) -> Option<StartRecord> {
        let shelf = self.0.lock().unwrap();
        let text = shelf.record.as_deref()?;
        Some(serde_json::from_str(text).unwrap())
    }

    pub fn fails(&self, fails: Option<Fails>) {
        self.0.lock().unwrap().fails = fails;
    }

    /// As an operator does who wants the job to begin anew.
    pub fn delete(&self) {
        self.0.lock().unwrap().record = None;
    }

    async fn answering(&self) -> Option<Fails> {
        let fails = self.0.lock().unwrap().fails;
        if fails == Some(Fails::Answering) {
            std::future::pending::<()>().await;
        }
        fails
    }
}

impl StartStore for Kept {
    type Error = Broken;

    async fn load(&mut self) -> Result<Option<StartRecord>, Broken> {
        match self.answering().await {
            Some(Fails::Load) => Err(Broken),
            Some(_) | None => Ok(self.record()),
        }
    }

    async fn save(&mut self, record: StartRecord) -> Result<(), Broken> {
        let fails = self.answering().await;
        let done = record.is_done();
        if fails == Some(Fails::Save { done }) {
            return Err(Broken);
        }
        self.0.lock().unwrap().record = Some(serde_json::to_string(&record).unwrap());
        if fails == Some(Fails::AfterSave { done }) {
            return Err(Broken);
        }
        Ok(())
    }
}

/// A subscription that does not exist at first.
pub const NEW: &str = "projects/demo-project/subscriptions/new";

/// The settings to create one with.
pub fn creation() -> SubscriptionCreation {
    SubscriptionCreation::builder(TOPIC.parse().unwrap())
        .build()
        .unwrap()
}

/// The error and everything behind it.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += ": ";
        text += &error.to_string();
        source = error.source();
    }
    text
}

pub fn name(subscription: &str) -> SubscriptionName {
    subscription.parse().unwrap()
}

impl World {
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::in_memory(self.emulator.dialer())
    }

    /// Prepares a job that reads these subscriptions with so many readers.
    pub fn prepare(&self, subscriptions: &[&str], readers: usize) -> Preparation {
        let names = subscriptions.iter().map(|subscription| name(subscription));
        prepare(&SplitPlan::new(names, readers).unwrap())
            .endpoint(self.endpoint())
            .instance("job")
    }

    /// Begins to build one of so many readers.
    pub fn reader(&self, prepared: &Prepared, reader: usize, readers: usize) -> SourceBuilder {
        // As it is handed to another process.
        let text = serde_json::to_string(prepared).unwrap();
        let prepared: Prepared = serde_json::from_str(&text).unwrap();
        let builder = prepared.reader(reader, readers).unwrap();
        builder.unwrap().endpoint(self.endpoint())
    }

    pub fn count(&self, method: Method) -> u64 {
        self.emulator.observe().count(method)
    }

    /// Creates a topic that keeps what is published for an hour.
    pub async fn create_retaining_topic(&self, name: &str) {
        let connection = Connection::unary(
            self.endpoint(),
            Credentials::anonymous(),
            ConnectionOptions::default(),
        );
        let topic = Topic {
            name: name.to_owned(),
            message_retention_duration: Some(proto::Duration {
                seconds: 3600,
                nanos: 0,
            }),
            ..Topic::default()
        };
        let created = connection
            .unwrap()
            .call(&CREATE_TOPIC, name, topic, LONG)
            .await;
        created.unwrap();
    }
}
