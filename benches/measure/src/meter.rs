//! Counting while a client works, and the looks at the clock.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::MissedTickBehavior};

use crate::{Failure, Flags, Latencies, Measured, Usage, now};

/// What a client under measurement counts into, from any of its tasks.
#[derive(Debug)]
pub struct Meter {
    enough: u64,
    reached: Notify,
    messages: AtomicU64,
    held: AtomicU64,
    errors: AtomicU64,
    latencies: Mutex<Latencies>,
}

impl Meter {
    /// A meter at nothing.
    #[must_use]
    pub fn new(flags: &Flags) -> Arc<Self> {
        Arc::new(Self {
            enough: flags.enough(),
            reached: Notify::new(),
            messages: AtomicU64::new(0),
            held: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            latencies: Mutex::default(),
        })
    }

    /// So many messages more.
    pub fn count(&self, messages: u64) {
        let before = self.messages.fetch_add(messages, Ordering::Relaxed);
        if before < self.enough && before + messages >= self.enough {
            self.reached.notify_one();
        }
    }

    /// So many are held at the moment; the most is what is reported.
    pub fn held(&self, messages: u64) {
        self.held.fetch_max(messages, Ordering::Relaxed);
    }

    /// Something failed.
    pub fn failed(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// A publish, a creation or a round of acknowledgements took so long.
    pub fn took(&self, took: Duration) {
        self.latencies().add(took);
    }

    /// Lets `work` run for the warm-up and the measured time, and prints the line.
    ///
    /// # Errors
    ///
    /// When `work` fails, or ends before its time.
    pub async fn measure(
        self: Arc<Self>,
        mode: &'static str,
        flags: &Flags,
        base: Usage,
        work: impl Future<Output = Result<(), Failure>> + Send + 'static,
    ) -> Result<(), Failure> {
        #[expect(
            clippy::disallowed_methods,
            reason = "its end and its panics are watched right below"
        )]
        let mut work = tokio::spawn(work);
        tokio::select! {
            ended = &mut work => {
                ended??;
                Err("the client ended before its time".into())
            }
            measured = self.look(mode, flags, base) => {
                work.abort();
                measured?.print()
            }
        }
    }

    async fn look(
        &self,
        mode: &'static str,
        flags: &Flags,
        base: Usage,
    ) -> Result<Measured, Failure> {
        tokio::time::sleep(flags.before()).await;
        let (since, before) = (now(), Usage::now()?);
        let messages_before = self.messages();
        let errors_before = self.errors.load(Ordering::Relaxed);
        *self.latencies() = Latencies::default();
        let end = tokio::time::sleep(flags.lasting());
        tokio::pin!(end);
        let mut second = tokio::time::interval(Duration::from_secs(1));
        second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        second.reset();
        let (mut at_last_second, mut slowest) = (messages_before, None);
        loop {
            tokio::select! {
                biased;
                () = &mut end => break,
                () = self.reached.notified() => break,
                _ = second.tick() => {
                    let messages = self.messages();
                    let this = messages - at_last_second;
                    slowest = Some(slowest.map_or(this, |slowest: u64| slowest.min(this)));
                    at_last_second = messages;
                }
            }
        }
        Ok(Measured {
            mode,
            messages: self.messages() - messages_before,
            seconds: since.elapsed().as_secs_f64(),
            slowest_second: slowest,
            base,
            before,
            after: Usage::now()?,
            latencies: std::mem::take(&mut *self.latencies()),
            held_max: self.held.load(Ordering::Relaxed),
            extended_ids: 0,
            suppressed: 0,
            errors: self.errors.load(Ordering::Relaxed) - errors_before,
        })
    }

    fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    fn latencies(&self) -> std::sync::MutexGuard<'_, Latencies> {
        self.latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
