//! What happened in a run, in order.

use std::{
    fmt::{self, Write as _},
    sync::Mutex,
};

use tokio::time::Instant;

/// Everything that is told, as a number; and aloud, when one run is replayed.
#[derive(Debug)]
pub(crate) struct Story {
    started: Instant,
    digest: Mutex<Digest>,
    aloud: bool,
}

/// FNV-1a over the text.
#[derive(Debug)]
struct Digest(u64);

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

impl Story {
    pub(crate) fn begin(started: Instant, aloud: bool) -> Self {
        Self {
            started,
            digest: Mutex::new(Digest(0xcbf2_9ce4_8422_2325)),
            aloud,
        }
    }

    pub(crate) fn tell(&self, what: fmt::Arguments<'_>) {
        let at = self.started.elapsed().as_millis();
        writeln!(self.digest.lock().unwrap(), "{at} {what}").unwrap();
        if self.aloud {
            println!("{:>10.3}  {what}", self.started.elapsed().as_secs_f64());
        }
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest.lock().unwrap().0
    }
}
