use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::connect::{ConnectError, Connector, Link, spawn};

/// A connection that is being made, or has been; shared by everybody who waits for it.
pub(super) type Making = Shared<BoxFuture<'static, Result<Link, ConnectError>>>;

/// One place of the pool: at most one connection at a time, and the requests that may be on it.
#[derive(Debug)]
pub(super) struct Slot {
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    making: Option<Making>,
    /// The count of received bytes at a time-out that had seen none since its request was sent.
    silent_at: Option<u64>,
}

impl Slot {
    pub(super) fn new(places: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places)),
            state: Mutex::default(),
        }
    }

    pub(super) fn free(&self) -> usize {
        self.places.available_permits()
    }

    /// A place, if one is free and nobody waits for it.
    pub(super) fn free_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Waits for a place. The caller bounds the wait.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        // Never closed, so never an error.
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// The connection, if there is one that takes requests.
    pub(super) fn ready_link(&self) -> Option<Link> {
        match self.lock().making.as_ref()?.peek() {
            Some(Ok(link)) if !link.sender.is_closed() => Some(link.clone()),
            Some(Ok(_) | Err(_)) | None => None,
        }
    }

    /// The connection, or the making of one. The making goes on when its waiters give up: a call
    /// with a short deadline must not keep a slow connection from ever being made.
    pub(super) fn link(&self, connector: &Arc<Connector>) -> Making {
        let mut state = self.lock();
        if let Some(making) = &state.making {
            let usable = match making.peek() {
                None => true,
                Some(Ok(link)) => !link.sender.is_closed(),
                Some(Err(_)) => false,
            };
            if usable {
                return making.clone();
            }
        }
        let (sender, receiver) = oneshot::channel();
        let connecting = Arc::clone(connector).connect();
        spawn(async move {
            // An error means that nobody waits any more.
            sender.send(connecting.await).ok();
        });
        let making = receiver
            .map(|made| made.unwrap_or(Err(ConnectError::Gone)))
            .boxed()
            .shared();
        *state = State {
            making: Some(making.clone()),
            silent_at: None,
        };
        making
    }

    /// A request got no answer in time. After two in a row without a byte received, the connection
    /// is taken for dead: the next request gets another.
    pub(super) fn handle_timeout(&self, link: &Link, received_when_sent: u64) {
        let received = link.meter.received();
        let mut state = self.lock();
        if !state.holds(link) {
            return;
        }
        if received != received_when_sent {
            state.silent_at = None;
        } else if state.silent_at == Some(received) {
            *state = State::default();
            tracing::warn!("two requests in a row got no answer; their connection is replaced");
        } else {
            state.silent_at = Some(received);
        }
    }

    /// Nothing more is sent on `link`; what is on it may still be answered.
    pub(super) fn retire(&self, link: &Link) {
        let mut state = self.lock();
        if state.holds(link) {
            *state = State::default();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn holds(&self, link: &Link) -> bool {
        let made = self.making.as_ref().and_then(Shared::peek);
        matches!(made, Some(Ok(current)) if current.number == link.number)
    }
}
