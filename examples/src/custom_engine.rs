//! A toy stream engine that takes any connector of the contract, by way of [`Erased`].
//!
//! An engine knows its connectors at run time only, so it cannot name their state types. [`Erased`]
//! makes them one type, [`SavedState`]: an envelope that says which connector it belongs to, and by which
//! a [`SavedStates`] finds it again. The
//! engine's own side of it is two small traits, [`Input`] and [`Output`], implemented once for every
//! `Erased` connector; whoever writes a connector for something else writes nothing for this engine.
//!
//! [`Engine::run`] holds the engine to the two rules of the contract: at a cut no record is on its way
//! from an input to an output, and all connectors are cut, saved and restored as one.

mod job;

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use checkpoint_store::{CheckpointStore, FileStore};
use connector_core::host::{Admission, Room, Settling};
use connector_core::{
    BoxError, Checkpoint, CheckpointError, Epoch, Erased, Restored, SavedState, SavedStates,
    StateError, Versioned, settle,
};
use futures::stream::FuturesUnordered;
use futures::{Sink, SinkExt, Stream, StreamExt};
use pubsub_source::Message;
use tokio::time::{MissedTickBehavior, interval};

pub use job::{COPIES, job, run};

/// Any connector, as far as checkpoints are concerned.
pub type Part = dyn Checkpoint<State = SavedState>;

/// Where the engine takes records from.
pub trait Input {
    /// The next record.
    fn poll_record(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, BoxError>>>;
    /// Its part in checkpoints.
    fn part(&mut self) -> &mut Part;
}

/// Where the engine hands records to.
pub trait Output {
    /// Whether one more record may come.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<Room, BoxError>>;
    /// Takes a record that there is room for.
    ///
    /// # Errors
    ///
    /// The connector's terminal error.
    fn accept(&mut self, record: Message) -> Result<(), BoxError>;
    /// Finishes what was committed.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>;
    /// Its part in checkpoints.
    fn part(&mut self) -> &mut Part;
}

impl<C, E> Input for Erased<C>
where
    C: Stream<Item = Result<Message, E>> + Checkpoint<State: Versioned> + Unpin + 'static,
    E: Error + Send + Sync + 'static,
{
    fn poll_record(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, BoxError>>> {
        self.get_mut().poll_next_unpin(cx).map_err(BoxError::from)
    }

    fn part(&mut self) -> &mut Part {
        self
    }
}

impl<C, E> Output for Erased<C>
where
    C: Sink<Message, Error = E>
        + Admission<Error = E>
        + Checkpoint<State: Versioned>
        + Unpin
        + 'static,
    E: Error + Send + Sync + 'static,
{
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<Room, BoxError>> {
        self.get_mut().poll_room(cx).map_err(BoxError::from)
    }

    fn accept(&mut self, record: Message) -> Result<(), BoxError> {
        self.get_mut()
            .start_send_unpin(record)
            .map_err(BoxError::from)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.get_mut().poll_close_unpin(cx).map_err(BoxError::from)
    }

    fn part(&mut self) -> &mut Part {
        self
    }
}

/// Every record of every input goes to every output.
pub struct Engine {
    store: FileStore,
    epoch: Epoch,
    every: Duration,
    /// What the newest checkpoint holds and nobody has asked for yet.
    restored: Option<Restored<SavedStates>>,
    inputs: Vec<Box<dyn Input + Send>>,
    outputs: Vec<Box<dyn Output + Send>>,
    /// Whose record comes next.
    turn: usize,
    commits: FuturesUnordered<Settling>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("epoch", &self.epoch)
            .field("inputs", &self.inputs.len())
            .field("outputs", &self.outputs.len())
            .finish_non_exhaustive()
    }
}

/// What the engine does next.
enum Step {
    Record(Message),
    CheckpointWanted,
    End,
}

impl Engine {
    /// An engine whose checkpoints are in this directory.
    ///
    /// # Errors
    ///
    /// What the store answers, or a newest checkpoint that is no engine's.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn open(directory: PathBuf, every: Duration) -> Result<Self, BoxError> {
        let mut store = FileStore::open(directory).await?;
        let (mut epoch, mut restored) = (Epoch::default(), None);
        if let Some(newest) = store.newest().await? {
            // The connectors commit by themselves what they restore.
            store.committing(newest.epoch).await?;
            epoch = newest.epoch;
            restored = Some(newest.try_map(|bytes| postcard::from_bytes(&bytes))?);
        }
        Ok(Self {
            store,
            epoch,
            every,
            restored,
            inputs: Vec::new(),
            outputs: Vec::new(),
            turn: 0,
            commits: FuturesUnordered::new(),
        })
    }

    /// What the connector of this kind and instance saved, for its builder's `restore`.
    ///
    /// # Errors
    ///
    /// A [`StateError`] when the state cannot be read.
    pub fn restored<S: Versioned>(
        &mut self,
        instance: &str,
    ) -> Result<Option<Restored<S>>, StateError> {
        match &mut self.restored {
            Some(restored) => restored.take(instance),
            None => Ok(None),
        }
    }

    /// Adds an input. Its instance is for ever: the state is found by it.
    #[must_use]
    pub fn input<C>(mut self, connector: C) -> Self
    where
        Erased<C>: Input + Send + 'static,
    {
        self.inputs.push(Box::new(Erased::new(connector)));
        self
    }

    /// Adds an output. Its instance is for ever: the state is found by it.
    #[must_use]
    pub fn output<C>(mut self, connector: C) -> Self
    where
        Erased<C>: Output + Send + 'static,
    {
        self.outputs.push(Box::new(Erased::new(connector)));
        self
    }

    /// Runs until it is asked to end or the inputs do.
    ///
    /// # Errors
    ///
    /// The first error of a connector or of the store; a [`StateError`] when no connector has asked for
    /// a state of the checkpoint, which may name what nobody would send then, and when two connectors
    /// have one name.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future is a crash: what was not saved comes again.
    pub async fn run(mut self, end: impl Future<Output = ()> + Send) -> Result<(), BoxError> {
        if let Some(restored) = self.restored.take() {
            restored.state.finish()?;
        }
        let mut tick = interval(self.every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut end = pin!(end);
        let mut last = false;
        while !last {
            let cut = tokio::select! { biased;
                Some(done) = self.commits.next() => { self.settled(done).await?; false }
                () = &mut end => { last = true; true }
                _ = tick.tick() => true,
                step = poll_fn(|cx| poll_step(&mut self.inputs, &mut self.outputs, &mut self.turn, cx)) => {
                    match step? {
                        Step::Record(record) => { self.hand_on(&record)?; false }
                        Step::CheckpointWanted => true,
                        Step::End => { last = true; true }
                    }
                }
            };
            if cut {
                self.checkpoint().await?;
            }
        }
        self.finish().await
    }

    /// To every output before anything is awaited: a cut finds the record in all of them.
    fn hand_on(&mut self, record: &Message) -> Result<(), BoxError> {
        for output in &mut self.outputs {
            output.accept(record.clone())?;
        }
        Ok(())
    }

    fn parts(&mut self) -> impl Iterator<Item = &mut Part> {
        let inputs = self.inputs.iter_mut().map(|input| input.part());
        let outputs = self.outputs.iter_mut().map(|output| output.part());
        inputs.chain(outputs)
    }

    async fn checkpoint(&mut self) -> Result<(), BoxError> {
        self.epoch = self.epoch.next();
        let epoch = self.epoch;
        // All cuts before the first wait.
        let cuts: Vec<_> = self.parts().map(|part| part.snapshot(epoch)).collect();
        let mut states = SavedStates::new();
        for receipt in cuts {
            states.add(receipt.await?)?;
        }
        self.store
            .save(epoch, postcard::to_stdvec(&states)?.into())
            .await?;
        self.store.committing(epoch).await?;
        let receipts: Vec<_> = self.parts().map(|part| part.commit(epoch)).collect();
        self.commits.push(settle(epoch, receipts));
        Ok(())
    }

    async fn settled(&mut self, done: Result<Epoch, CheckpointError>) -> Result<(), BoxError> {
        match done {
            Ok(epoch) => self.store.settled(epoch).await?,
            // Still being sent: the epoch stays without its mark, and a restart sends it again.
            Err(CheckpointError::Unconfirmed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<(), BoxError> {
        while !self.commits.is_empty() {
            tokio::select! { biased;
                Some(done) = self.commits.next() => self.settled(done).await?,
                // An output that keeps something aside needs one more state that names it.
                wanted = poll_fn(|cx| poll_wanted(&mut self.outputs, cx)) => {
                    wanted?;
                    self.checkpoint().await?;
                }
            }
        }
        for output in &mut self.outputs {
            poll_fn(|cx| output.poll_close(cx)).await?;
        }
        // An input gives back what it has fetched when it is dropped.
        self.store.close().await;
        Ok(())
    }
}

/// Room in every output first, then a record.
fn poll_step(
    inputs: &mut [Box<dyn Input + Send>],
    outputs: &mut [Box<dyn Output + Send>],
    turn: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<Result<Step, BoxError>> {
    let mut full = false;
    for output in outputs {
        match output.poll_room(cx)? {
            Poll::Ready(Room::CheckpointWanted) => return Poll::Ready(Ok(Step::CheckpointWanted)),
            Poll::Ready(_) => {}
            Poll::Pending => full = true,
        }
    }
    if full {
        return Poll::Pending;
    }
    let mut ended = 0;
    for _ in 0..inputs.len() {
        *turn = (*turn + 1) % inputs.len();
        match inputs[*turn].poll_record(cx)? {
            Poll::Ready(Some(record)) => return Poll::Ready(Ok(Step::Record(record))),
            Poll::Ready(None) => ended += 1,
            Poll::Pending => {}
        }
    }
    if ended == inputs.len() {
        Poll::Ready(Ok(Step::End))
    } else {
        Poll::Pending
    }
}

fn poll_wanted(
    outputs: &mut [Box<dyn Output + Send>],
    cx: &mut Context<'_>,
) -> Poll<Result<(), BoxError>> {
    for output in outputs {
        if output.poll_room(cx)? == Poll::Ready(Room::CheckpointWanted) {
            return Poll::Ready(Ok(()));
        }
    }
    Poll::Pending
}
