//! Any order of calls by any number of owners: the directory, the memory and a naive model agree.

use bytes::Bytes;
use checkpoint_store::{CheckpointStore, FileStore, MemoryPlace, StoreError};
use connector_core::{Epoch, Restored};
use proptest::prelude::*;

/// What an owner does. `owner` picks one of those that were ever opened and not dropped.
#[derive(Debug, Clone)]
enum Step {
    TakeOver,
    /// The process of the newest owner ends, and the next one opens the store.
    Restart,
    Save {
        owner: usize,
        ahead: u64,
    },
    Mark {
        owner: usize,
        behind: u64,
        settled: bool,
    },
    Newest {
        owner: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => Just(Step::TakeOver),
        1 => Just(Step::Restart),
        4 => (any::<usize>(), 0..4_u64).prop_map(|(owner, ahead)| Step::Save { owner, ahead }),
        4 => (any::<usize>(), 0..3_u64, any::<bool>())
            .prop_map(|(owner, behind, settled)| Step::Mark { owner, behind, settled }),
        2 => any::<usize>().prop_map(|owner| Step::Newest { owner }),
    ];
    prop::collection::vec(step, 1..40)
}

/// The promises of a store, in as few words as possible.
#[derive(Debug, Default)]
struct Model {
    newest: Option<Restored<Bytes>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Done,
    Newest(Option<Restored<Bytes>>),
    NotOwner,
    OutOfOrder,
    NeverSaved,
}

impl Model {
    fn epoch(&self) -> u64 {
        self.newest.as_ref().map_or(0, |newest| newest.epoch.get())
    }

    fn save(&mut self, epoch: u64) -> Answer {
        if self.newest.is_some() && epoch <= self.epoch() {
            return Answer::OutOfOrder;
        }
        self.newest = Some(Restored::new(Epoch::new(epoch), state(epoch)));
        Answer::Done
    }

    fn mark(&mut self, epoch: u64, settled: bool) -> Answer {
        match &mut self.newest {
            Some(newest) if epoch <= newest.epoch.get() => {
                newest.settled |= settled && epoch == newest.epoch.get();
                Answer::Done
            }
            Some(_) | None => Answer::NeverSaved,
        }
    }
}

fn state(epoch: u64) -> Bytes {
    Bytes::from(format!("state {epoch}"))
}

fn answer(done: Result<(), StoreError>) -> Answer {
    match done {
        Ok(()) => Answer::Done,
        Err(StoreError::NotOwner { .. }) => Answer::NotOwner,
        Err(StoreError::OutOfOrder { .. }) => Answer::OutOfOrder,
        Err(StoreError::NeverSaved { .. }) => Answer::NeverSaved,
        Err(error) => panic!("{error}"),
    }
}

fn newest(read: Result<Option<Restored<Bytes>>, StoreError>) -> Answer {
    match read {
        Ok(newest) => Answer::Newest(newest),
        Err(error) => answer(Err(error)),
    }
}

/// One kind of store: what lasts, and the owners in the order in which they came.
struct Stores<S> {
    owners: Vec<S>,
}

impl<S: CheckpointStore> Stores<S> {
    async fn take(&mut self, step: &Step, epoch: u64) -> Answer {
        let last = self.owners.len() - 1;
        let owner = |owner: &usize| owner % (last + 1);
        match step {
            Step::TakeOver | Step::Restart => newest(self.owners[last].newest().await),
            Step::Save { owner: at, .. } => {
                let store = &mut self.owners[owner(at)];
                answer(store.save(Epoch::new(epoch), state(epoch)).await)
            }
            Step::Mark {
                owner: at, settled, ..
            } => {
                let store = &mut self.owners[owner(at)];
                let epoch = Epoch::new(epoch);
                answer(if *settled {
                    store.settled(epoch).await
                } else {
                    store.committing(epoch).await
                })
            }
            Step::Newest { owner: at } => newest(self.owners[owner(at)].newest().await),
        }
    }
}

async fn run(steps: Vec<Step>) {
    let directory = tempfile::tempdir().expect("a directory");
    let place = MemoryPlace::new();
    let mut model = Model::default();
    let mut files = Stores {
        owners: vec![FileStore::open(directory.path()).await.expect("fresh")],
    };
    let mut memory = Stores {
        owners: vec![place.open()],
    };
    for step in steps {
        match step {
            Step::TakeOver => {
                let store = FileStore::take_over(directory.path()).await;
                files.owners.push(store.expect("nothing is damaged"));
                memory.owners.push(place.open());
            }
            Step::Restart => {
                files.owners.pop();
                memory.owners.pop();
                let store = FileStore::open(directory.path()).await;
                files.owners.push(store.expect("its owner is gone"));
                memory.owners.push(place.open());
            }
            Step::Save { .. } | Step::Mark { .. } | Step::Newest { .. } => {}
        }
        let last = files.owners.len() - 1;
        let (epoch, expected) = match &step {
            Step::TakeOver | Step::Restart => (0, Answer::Newest(model.newest.clone())),
            Step::Save { owner, ahead } => {
                let epoch = model.epoch() + ahead;
                let fenced = owner % (last + 1) != last;
                let expected = if fenced {
                    Answer::NotOwner
                } else {
                    model.save(epoch)
                };
                (epoch, expected)
            }
            Step::Mark {
                owner,
                behind,
                settled,
            } => {
                let epoch = (model.epoch() + 1).saturating_sub(*behind);
                let fenced = owner % (last + 1) != last;
                let expected = if fenced {
                    Answer::NotOwner
                } else {
                    model.mark(epoch, *settled)
                };
                (epoch, expected)
            }
            Step::Newest { owner } if owner % (last + 1) != last => (0, Answer::NotOwner),
            Step::Newest { .. } => (0, Answer::Newest(model.newest.clone())),
        };
        assert_eq!(files.take(&step, epoch).await, expected, "files: {step:?}");
        assert_eq!(
            memory.take(&step, epoch).await,
            expected,
            "memory: {step:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn files_and_memory_do_what_the_model_does(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(run(steps));
    }
}
