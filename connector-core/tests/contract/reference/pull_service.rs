//! An outside service that delivers numbered messages under leases.

use std::sync::{Arc, Mutex};

use connector_core::conformance::Hold;

#[derive(Debug, Clone, Default)]
pub(crate) struct PullService(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    messages: Vec<Message>,
    next_ack: u64,
    hold: Hold,
    broken: bool,
    finished: bool,
}

#[derive(Debug)]
struct Message {
    numbers: Vec<u64>,
    acknowledged: bool,
    /// The only ack id that counts: that of the newest delivery, while its lease lives.
    lease: Option<u64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Delivered {
    pub(crate) id: u64,
    pub(crate) ack: u64,
    pub(crate) numbers: Vec<u64>,
}

/// What became of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acked {
    Done,
    Waits,
    Stale,
}

impl PullService {
    pub(crate) fn publish(&self, numbers: Vec<u64>) {
        self.0.lock().unwrap().messages.push(Message {
            numbers,
            acknowledged: false,
            lease: None,
        });
    }

    /// Leases everything that is free.
    pub(crate) fn pull(&self) -> Result<Vec<Delivered>, Missing> {
        let mut inner = self.0.lock().unwrap();
        if inner.broken {
            return Err(Missing);
        }
        let Inner {
            messages, next_ack, ..
        } = &mut *inner;
        let free = messages
            .iter_mut()
            .zip(0..)
            .filter(|(message, _)| !message.acknowledged && message.lease.is_none());
        Ok(free
            .map(|(message, id)| {
                *next_ack += 1;
                message.lease = Some(*next_ack);
                Delivered {
                    id,
                    ack: *next_ack,
                    numbers: message.numbers.clone(),
                }
            })
            .collect())
    }

    pub(crate) fn acknowledge(&self, ack: u64) -> Acked {
        let mut inner = self.0.lock().unwrap();
        if inner.hold != Hold::Nothing {
            return Acked::Waits;
        }
        match inner.leased(ack) {
            Some(message) => {
                message.lease = None;
                message.acknowledged = true;
                Acked::Done
            }
            None => Acked::Stale,
        }
    }

    pub(crate) fn release(&self, ack: u64) {
        if let Some(message) = self.0.lock().unwrap().leased(ack) {
            message.lease = None;
        }
    }

    pub(crate) fn lapse(&self) {
        for message in &mut self.0.lock().unwrap().messages {
            message.lease = None;
        }
    }

    pub(crate) fn acknowledged(&self) -> Vec<u64> {
        let inner = self.0.lock().unwrap();
        let acknowledged = inner.messages.iter().filter(|message| message.acknowledged);
        acknowledged
            .flat_map(|message| message.numbers.iter().copied())
            .collect()
    }

    pub(crate) fn hold(&self, hold: Hold) {
        self.0.lock().unwrap().hold = hold;
    }

    /// Nothing will be published any more: sources end when they have handed out what is there.
    pub(crate) fn finish(&self) {
        self.0.lock().unwrap().finished = true;
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.0.lock().unwrap().finished
    }

    pub(crate) fn set_broken(&self, broken: bool) {
        self.0.lock().unwrap().broken = broken;
    }
}

impl Inner {
    fn leased(&mut self, ack: u64) -> Option<&mut Message> {
        self.messages
            .iter_mut()
            .find(|message| message.lease == Some(ack))
    }
}

#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the subscription does not exist; nothing was acknowledged")]
pub(crate) struct Missing;
