//! Answers that are encoded once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::{BufMut as _, Bytes, BytesMut};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::PublishResponse;
use prost::Message;
use prost_types::Any;

use crate::cloudtasks::proto::{BatchCreateTasksResponse, Operation, Task, operation};

/// The type under which a batch's tasks stand in its operation.
const BATCH: &str = "type.googleapis.com/google.cloud.tasks.v2.BatchCreateTasksResponse";

/// Answers by how many items they answer for.
#[derive(Debug)]
pub(super) struct Answers {
    empty: Bytes,
    task: Bytes,
    published: Mutex<BTreeMap<u64, Bytes>>,
    batches: Mutex<BTreeMap<u64, Bytes>>,
}

impl Answers {
    pub(super) fn new() -> Self {
        Self {
            empty: framed(&()),
            task: framed(&task()),
            published: Mutex::default(),
            batches: Mutex::default(),
        }
    }

    pub(super) fn empty(&self) -> Bytes {
        self.empty.clone()
    }

    pub(super) fn task(&self) -> Bytes {
        self.task.clone()
    }

    /// The answer to a publish of so many messages.
    pub(super) fn published(&self, messages: u64) -> Bytes {
        cached(&self.published, messages, || {
            let message_ids = (0..messages).map(|_| "1234567890123456".to_owned());
            framed(&PublishResponse {
                message_ids: message_ids.collect(),
            })
        })
    }

    /// The finished operation of a batch of so many tasks.
    pub(super) fn batch(&self, tasks: u64) -> Bytes {
        cached(&self.batches, tasks, || {
            let response = BatchCreateTasksResponse {
                tasks: (0..tasks).map(|_| task()).collect(),
            };
            framed(&Operation {
                name: "projects/p/locations/l/operations/o".to_owned(),
                metadata: None,
                done: true,
                result: Some(operation::Result::Response(Any {
                    type_url: BATCH.to_owned(),
                    value: response.encode_to_vec(),
                })),
            })
        })
    }
}

fn task() -> Task {
    Task {
        name: "projects/p/locations/l/queues/q/tasks/1234567890123456789".to_owned(),
        ..Default::default()
    }
}

fn cached(cache: &Mutex<BTreeMap<u64, Bytes>>, key: u64, make: impl FnOnce() -> Bytes) -> Bytes {
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    cache.entry(key).or_insert_with(make).clone()
}

fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut framed = BytesMut::with_capacity(length + 5);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    framed.extend_from_slice(&message.encode_to_vec());
    framed.freeze()
}
