//! A host that feeds a sink, with checkpoints, through a spell of trouble.

use std::{collections::BTreeSet, error::Error, time::Duration};

use connector_core::{Cause, Checkpoint, Committed, Epoch, Receipt, Restored};
use futures::{Sink, SinkExt, StreamExt, stream::FuturesUnordered};
use gcp_emulator::{Emulator, Method};

use crate::{
    expected::outcome,
    trouble::{LONG, Seen, Spell, Trouble, variant},
};

const RECORDS: usize = 60;

/// Records of one checkpoint, taken every 2 s: the trouble begins with the second and is over after the
/// last.
const EPOCH: usize = 5;

/// The host looks after its commits at least so often.
const TICK: Duration = Duration::from_secs(2);

/// A sink of numbers, and how a test looks behind it.
pub(crate) trait Subject:
    Sink<usize, Error: Error + 'static> + Checkpoint + Unpin + Sized
{
    /// Which connector, as the tables call it.
    const CONNECTOR: &'static str;

    /// What the sink ended with, found in an error of it.
    fn last_word(error: &(dyn Error + 'static)) -> Option<String>;

    /// The records that were refused at their commit and are kept for the operator.
    fn kept(&self) -> BTreeSet<usize>;

    /// The operator sends them all again.
    fn send_kept(&mut self);
}

/// Builds a sink on what its predecessor saved.
type Build<S> = Box<dyn Fn(Option<Restored<<S as Checkpoint>::State>>) -> S>;

pub(crate) struct Case<S: Subject> {
    pub(crate) emulator: Emulator,
    pub(crate) column: &'static str,
    pub(crate) method: Method,
    pub(crate) staged: bool,
    pub(crate) build: Build<S>,
    /// The records that the service has.
    pub(crate) stored: fn(&Emulator) -> BTreeSet<usize>,
}

struct Host<'a, S: Subject> {
    case: &'a Case<S>,
    epoch: Epoch,
    saved: Option<Restored<String>>,
    /// The first record that no saved state covers.
    durable: usize,
    /// The first record that no commit covers that was asked for.
    committed: usize,
    kept_any: bool,
}

/// Why a sink ended.
struct Ended(String);

impl<S: Subject> Host<'_, S> {
    fn ended(error: &(dyn Error + 'static)) -> Ended {
        let mut word = None;
        let mut link = Some(error);
        while let Some(this) = link {
            // A cause is shown as what it holds, and is something else.
            let this = match this.downcast_ref::<Cause>() {
                Some(cause) => cause.get(),
                None => this,
            };
            word = S::last_word(this).or(word);
            link = this.source();
        }
        Ended(word.unwrap_or_else(|| panic!("no error of the sink: {error:?}")))
    }

    fn stored(&self) -> BTreeSet<usize> {
        (self.case.stored)(&self.case.emulator)
    }

    fn check_nothing_is_early(&self) {
        if self.case.staged {
            let committed = (0..self.committed).collect();
            let stored = self.stored();
            assert!(stored.is_subset(&committed), "sent before its commit");
        }
    }

    async fn live(&mut self) -> Result<(), Ended> {
        let restored = self.saved.clone();
        let restored = restored.map(|saved| saved.map(|text| serde_json::from_str(&text).unwrap()));
        let mut sink = (self.case.build)(restored);
        let mut fed = self.durable;
        let mut commits = FuturesUnordered::new();
        loop {
            let more = RECORDS.min(fed + EPOCH);
            for record in fed..more {
                sink.feed(record)
                    .await
                    .map_err(|error| Self::ended(&error))?;
            }
            fed = more;
            self.epoch = self.epoch.next();
            let state = sink.snapshot(self.epoch).await;
            let state = state.map_err(|error| Self::ended(&error))?;
            if !self.case.staged {
                let all = (0..fed).collect::<BTreeSet<_>>();
                assert!(
                    self.stored().is_superset(&all),
                    "sealed before it is stored"
                );
            }
            let text = serde_json::to_string(&state).unwrap();
            self.saved = Some(Restored::new(self.epoch, text));
            self.durable = fed;
            self.committed = fed;
            commits.push(covering(fed, sink.commit(self.epoch)));
            self.look(&sink, &mut commits).await?;
            let kept = sink.kept();
            self.kept_any |= !kept.is_empty();
            if fed == RECORDS && commits.is_empty() {
                if kept.is_empty() && self.stored().len() == RECORDS {
                    sink.close().await.map_err(|error| Self::ended(&error))?;
                    return Ok(());
                }
                sink.send_kept();
            }
        }
    }

    /// Waits for a tick, and takes what resolves.
    async fn look(&self, sink: &S, commits: &mut Commits) -> Result<(), Ended> {
        let tick = tokio::time::sleep(TICK);
        tokio::pin!(tick);
        loop {
            tokio::select! {
                biased;
                Some((covered, done)) = commits.next() => {
                    done.map_err(|error| Self::ended(&error))?;
                    let mut there = self.stored();
                    there.extend(sink.kept());
                    let all = (0..covered).collect();
                    assert!(there.is_superset(&all), "confirmed before it is stored or kept");
                }
                () = &mut tick => return Ok(()),
            }
            self.check_nothing_is_early();
        }
    }
}

type Done = (usize, Result<Committed, connector_core::CheckpointError>);
type Commits = FuturesUnordered<futures::future::BoxFuture<'static, Done>>;

fn covering(
    records: usize,
    receipt: Receipt<Committed>,
) -> futures::future::BoxFuture<'static, Done> {
    Box::pin(async move { (records, receipt.await) })
}

/// Runs a cell.
pub(crate) async fn run<S: Subject>(case: Case<S>, trouble: Trouble) {
    let expected = outcome(S::CONNECTOR, case.column, trouble);
    let spell = Spell::begin(&case.emulator, case.method, trouble);
    let mut host = Host {
        case: &case,
        epoch: Epoch::default(),
        saved: None,
        durable: 0,
        committed: 0,
        kept_any: false,
    };
    let first = tokio::time::timeout(LONG, host.live()).await;
    let seen = match first.expect("it moves") {
        Ok(()) if host.kept_any => Seen::KeptAside(spell.elapsed()),
        Ok(()) => Seen::Recovered(spell.elapsed()),
        Err(Ended(error)) => {
            let seen = Seen::Ended(error, spell.struck());
            spell.repair();
            let second = tokio::time::timeout(LONG, host.live()).await;
            second
                .expect("it moves")
                .map_err(|Ended(error)| error)
                .expect("the successor lives");
            seen
        }
    };
    spell.struck();
    assert_eq!(host.stored(), (0..RECORDS).collect(), "nothing is lost");
    expected.check(&seen);
}

/// The variant of an error of the sink, unless it only says that the sink ended before.
pub(crate) fn word<E: Error + 'static>(
    error: &(dyn Error + 'static),
    is_closed: impl Fn(&E) -> bool,
) -> Option<String> {
    let error = error
        .downcast_ref::<E>()
        .filter(|error| !is_closed(error))?;
    Some(variant(error))
}
