//! Effects in a database, once each: message ids as idempotency keys, in the checkpoint's transaction.
//!
//! What a message does to the database and the checkpoint that covers the message become durable in one
//! transaction, so a crash leaves both or neither. Two things can still bring a message again after it
//! was applied: a crash before its acknowledgement arrived, and a redelivery so late that the source has
//! forgotten it. The first is recognised by the restored source; both are recognised by the key, which
//! is in the same transaction too.
//!
//! The key is the message's id, which is unique per topic: a job of several topics puts the topic beside
//! it. What a publisher sends twice are two messages, and need a key of the publisher's.

use std::mem;
use std::path::{Path, PathBuf};
use std::pin::pin;

use connector_core::{BoxError, Checkpoint, CheckpointError, Epoch, Restored, settle};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use gcp_emulator::{Fault, FaultPlan, Method, Rule};
use gcp_wire::Endpoint;
use pubsub_source::{Message, PubsubSource, SourceState};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use crate::copy::CHECKPOINT_INTERVAL;
use crate::figures::Figures;
use crate::process::{Asked, End, process};
use crate::shop::{Order, SUBSCRIPTION, Shop};

/// What an order does: its customer owes more.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effect {
    /// The idempotency key.
    pub message_id: String,
    /// When the message was published, in milliseconds since the Unix epoch.
    pub published: i64,
    /// Who owes.
    pub customer: String,
    /// How much more.
    pub cents: i64,
}

impl Effect {
    /// What this message does.
    ///
    /// # Errors
    ///
    /// When it is no order.
    pub fn of(message: &Message) -> Result<Self, BoxError> {
        let order: Order = serde_json::from_slice(message.data())?;
        Ok(Self {
            message_id: message.id().to_owned(),
            published: message.publish_millis().unwrap_or_default(),
            customer: order.customer,
            cents: i64::try_from(order.cents)?,
        })
    }
}

/// The database: what customers owe, what was applied, and the newest checkpoint.
#[derive(Debug)]
pub struct Books {
    connection: Connection,
    /// Which owner this is, of all that ever were.
    owner: i64,
}

/// `applied` grows by a row per message. A row may go once its message cannot come again: when it is older
/// than the retention of the subscription.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS balance (customer TEXT PRIMARY KEY, cents INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS applied (
        message_id TEXT PRIMARY KEY, published INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS job (
        one INTEGER PRIMARY KEY CHECK (one = 1), owner INTEGER NOT NULL, epoch INTEGER, state BLOB
    );
    INSERT OR IGNORE INTO job (one, owner) VALUES (1, 0);
";

impl Books {
    /// Opens the database and takes it over: whoever had it can save no more.
    ///
    /// # Errors
    ///
    /// What SQLite answers.
    pub fn open(path: &Path) -> Result<Self, BoxError> {
        let mut connection = Connection::open(path)?;
        // SQLite's defaults are what a checkpoint needs: a journal, synchronised before a commit returns.
        let taking = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        taking.execute_batch(TABLES)?;
        let owner = taking.query_row(
            "UPDATE job SET owner = owner + 1 RETURNING owner",
            [],
            |row| row.get(0),
        )?;
        taking.commit()?;
        Ok(Self { connection, owner })
    }

    /// The newest checkpoint.
    ///
    /// # Errors
    ///
    /// What SQLite answers, or a state that is of something else.
    pub fn newest(&self) -> Result<Option<Restored<SourceState>>, BoxError> {
        let newest = self.connection.query_row(
            "SELECT epoch, state FROM job WHERE epoch IS NOT NULL",
            [],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)),
        );
        let Some((epoch, state)) = newest.optional()? else {
            return Ok(None);
        };
        let epoch = Epoch::new(u64::try_from(epoch)?);
        Ok(Some(Restored::new(epoch, serde_json::from_slice(&state)?)))
    }

    /// Makes an epoch durable with everything it does, or nothing of it. Answers how many effects were
    /// new.
    ///
    /// # Errors
    ///
    /// What SQLite answers; that somebody else has taken over.
    pub fn save(
        &mut self,
        epoch: Epoch,
        state: &SourceState,
        effects: &[Effect],
    ) -> Result<usize, BoxError> {
        let (number, state) = (i64::try_from(epoch.get())?, serde_json::to_vec(state)?);
        let behavior = TransactionBehavior::Immediate;
        let saving = self.connection.transaction_with_behavior(behavior)?;
        // The fence: a process that was stopped while another took over must not save, nor then
        // acknowledge, what the other one has never seen.
        let saved = saving.execute(
            "UPDATE job SET epoch = ?1, state = ?2 WHERE owner = ?3",
            params![number, state, self.owner],
        )?;
        if saved == 0 {
            return Err("another process has taken the job over; nothing was saved".into());
        }
        let mut new = 0;
        {
            let mut apply =
                saving.prepare("INSERT INTO applied VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
            let mut book = saving.prepare(
                "INSERT INTO balance VALUES (?1, ?2)
                 ON CONFLICT (customer) DO UPDATE SET cents = cents + excluded.cents",
            )?;
            for effect in effects {
                let first = apply.execute(params![effect.message_id, effect.published])?;
                if first == 0 {
                    continue; // applied before
                }
                book.execute(params![effect.customer, effect.cents])?;
                new += 1;
            }
        }
        saving.commit()?;
        Ok(new)
    }

    /// How many messages were applied, and what all customers owe.
    ///
    /// # Errors
    ///
    /// What SQLite answers.
    pub fn totals(&self) -> Result<(i64, i64), BoxError> {
        let count =
            "SELECT (SELECT count(*) FROM applied), (SELECT coalesce(sum(cents), 0) FROM balance)";
        Ok(self
            .connection
            .query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }
}

/// Keeps the books until it is asked to end.
///
/// # Errors
///
/// The first error of the source, of the database, or of a message.
///
/// # Cancel safety
///
/// Dropping the future is a crash: what was not saved comes again.
pub async fn job(
    endpoint: Endpoint,
    database: PathBuf,
    end: impl Future<Output = ()> + Send,
) -> Result<(), BoxError> {
    let mut books = Books::open(&database)?;
    let restored = books.newest()?;
    let mut epoch = restored
        .as_ref()
        .map_or_else(Epoch::default, |newest| newest.epoch);
    let mut source = PubsubSource::builder(SUBSCRIPTION.parse()?)
        .endpoint(endpoint)
        .restore(restored)
        .build()?;
    // Bounded by the source's `outstanding`: it hands out no more between two commits.
    let mut effects = Vec::new();
    let mut commits = FuturesUnordered::new();
    let mut tick = interval(CHECKPOINT_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut end = pin!(end);
    let mut last = false;
    while !last {
        let cut = tokio::select! { biased;
            Some(done) = commits.next() => { settled(done)?; false }
            () = &mut end => { last = true; true }
            _ = tick.tick() => true,
            message = source.next() => match message {
                Some(message) => { effects.push(Effect::of(&message?)?); false }
                None => { last = true; true }
            },
        };
        if cut {
            epoch = epoch.next();
            // The cut and the effects it covers, with no await in between.
            let (receipt, covered) = (source.snapshot(epoch), mem::take(&mut effects));
            let state = receipt.await?;
            // SQLite waits for the disk; the runtime need not.
            books = spawn_blocking(move || {
                books.save(epoch, &state, &covered)?;
                Ok::<_, BoxError>(books)
            })
            .await??;
            commits.push(settle(epoch, [source.commit(epoch)]));
        }
    }
    while let Some(done) = commits.next().await {
        settled(done)?;
    }
    source.close().await?;
    Ok(())
}

/// A source needs no mark that an epoch is settled: it recognises what it acknowledged.
fn settled(done: Result<Epoch, CheckpointError>) -> Result<(), CheckpointError> {
    match done {
        // The source goes on acknowledging, and the next commit covers it again.
        Ok(_) | Err(CheckpointError::Unconfirmed { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Kills the job when it has applied orders and no acknowledgement of them has arrived, starts it again,
/// and compares the books with what was sold.
///
/// # Errors
///
/// What kept the scene from being played.
///
/// # Cancel safety
///
/// Dropping the future ends the job; the server and the database go with it.
pub async fn run() -> Result<Figures, BoxError> {
    let plan = FaultPlan::new();
    let (shop, state) = (Shop::open_with(plan, false)?, tempfile::tempdir()?);
    let database = state.path().join("books.sqlite");
    let silent = shop
        .emulator()
        .faults()
        .add(Rule::on(Method::Acknowledge).then(Fault::Never));
    let start = || {
        let (endpoint, database) = (shop.endpoint(), database.clone());
        move |end: Asked| job(endpoint, database, end)
    };

    shop.sell(0..300)?;
    let applied = shop.wait("acknowledgements are on their way", |seen| {
        seen.count(Method::Acknowledge) > 0
    });
    process(start(), async { applied.await.map(|()| End::Killed) }).await?;
    shop.emulator().faults().remove(silent);
    let before_crash = Books::open(&database)?.totals()?.0;

    shop.sell(300..600)?;
    let all = shop.wait("all is acknowledged", |seen| {
        seen.subscription(SUBSCRIPTION).acks >= 600
    });
    process(start(), async { all.await.map(|()| End::Asked) }).await?;

    let (applied, cents) = Books::open(&database)?.totals()?;
    let sold: u64 = (0..600).map(|id| Order::numbered(id).cents).sum();
    let delivered = shop
        .emulator()
        .observe()
        .subscription(SUBSCRIPTION)
        .delivered;
    Ok(Figures::of([
        ("orders", 600),
        ("deliveries", usize::try_from(delivered)?),
        ("applied before the crash", usize::try_from(before_crash)?),
        ("applied", usize::try_from(applied)?),
        ("cents sold", usize::try_from(sold)?),
        ("cents in the books", usize::try_from(cents)?),
        ("not acknowledged", shop.left()),
    ]))
}
