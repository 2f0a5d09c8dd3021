//! A morning in the shop, and its books.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use connector_core::BoxError;
use futures::FutureExt;
use futures::future::BoxFuture;
use gcp_emulator::Emulator;
use gcp_emulator::pubsub::state::OnStreamClose;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::{TOTALS, Total, job};
use crate::figures::Figures;
use crate::shop::{ORDERS, Order, Shop};

/// The first of January 2026, 09:40 UTC.
const MORNING: Duration = Duration::from_secs(1_767_260_400);

/// The time between two deliveries of the shop.
const PAUSE: Duration = Duration::from_secs(300);

/// Sells from 9:40 to 11:30, lets the job crash at 10:20, restarts it at 10:25, and compares its totals
/// with the shop's books.
///
/// For a runtime with a paused clock, where hours pass in a second. With one thread and one clock the
/// crash is a dropped future.
///
/// # Errors
///
/// What kept the scene from being played.
///
/// # Cancel safety
///
/// Dropping the future ends the job; the server and the checkpoints go with it.
pub async fn run() -> Result<Figures, BoxError> {
    let emulator = Emulator::builder()
        .wall_clock(SystemTime::UNIX_EPOCH + MORNING)
        .on_stream_close(OnStreamClose::RedeliverAtOnce);
    let (shop, state) = (Shop::on(emulator.start(), false)?, tempfile::tempdir()?);
    let start = |end: BoxFuture<'static, ()>| job(shop.endpoint(), state.path().to_owned(), end);
    let sell = |deliveries: Range<u32>| async {
        for delivery in deliveries {
            shop.sell(delivery * 20..delivery * 20 + 20)?;
            sleep(PAUSE).await;
        }
        Ok::<(), BoxError>(())
    };

    tokio::select! {
        ended = start(futures::future::pending().boxed()) => ended?,
        sold = sell(0..8) => sold?,
    }
    let before_crash = shop.emulator().observe().topic(TOTALS).published;
    sell(8..9).await?; // while the job is down

    let (ask, asked) = oneshot::channel::<()>();
    let (ended, sold) = tokio::join!(start(asked.map(drop).boxed()), async {
        let sold = sell(9..22).await;
        ask.send(()).unwrap_or_default();
        sold
    });
    ended.and(sold)?;

    let (expected, found) = (books(&shop)?, totals(&shop)?);
    let published = shop.emulator().observe().topic(TOTALS).published;
    let right = expected
        .iter()
        .filter(|(of, sums)| found.get(*of) == Some(*sums));
    Ok(Figures::of([
        ("orders", 22 * 20),
        ("totals before the crash", usize::try_from(before_crash)?),
        ("totals", usize::try_from(published)?),
        ("totals expected", expected.len()),
        ("totals that are right", right.count()),
        ("not acknowledged", shop.left()),
    ]))
}

/// By window and customer: orders, and cents.
type Sums = BTreeMap<(String, String), (u32, u64)>;

/// What the shop sold in the hours that are over, from the messages' publish times.
fn books(shop: &Shop) -> Result<Sums, BoxError> {
    let now = shop.emulator().now().as_unix().as_secs();
    let mut sums = Sums::new();
    for message in &shop.emulator().observe().topic(ORDERS).messages {
        let order: Order = serde_json::from_slice(&message.data)?;
        let published = message
            .publish_time
            .ok_or("a message without a publish time")?;
        let published = u64::try_from(published.seconds)?;
        let start = published - published % 3_600;
        if start + 3_600 <= now {
            let start = SystemTime::UNIX_EPOCH + Duration::from_secs(start);
            let start = humantime::format_rfc3339_seconds(start).to_string();
            let sum = sums.entry((start, order.customer)).or_default();
            *sum = (sum.0 + 1, sum.1 + order.cents);
        }
    }
    Ok(sums)
}

/// What was published, added up as a reader of the totals does.
fn totals(shop: &Shop) -> Result<Sums, BoxError> {
    let mut sums = Sums::new();
    for message in &shop.emulator().observe().topic(TOTALS).messages {
        let total: Total = serde_json::from_slice(&message.data)?;
        let start = message.attributes.get("window-start").cloned();
        let start = start.ok_or("a total without its window")?;
        let sum = sums.entry((start, total.customer)).or_default();
        *sum = (sum.0 + total.orders, sum.1 + total.cents);
    }
    Ok(sums)
}
