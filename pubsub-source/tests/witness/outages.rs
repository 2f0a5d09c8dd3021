//! A server that is killed and comes back, without anything it knew.

use std::{
    net::TcpListener,
    process::{Command, Stdio},
};

use connector_core::{Checkpoint, CheckpointError, Epoch};
use pubsub_source::{Endpoint, SourceError};
use tracing::Level;

use crate::{door::Door, log::Log, world::*};

/// Tries to reach a server that is away: the pauses between them double up to 10 s, so these are
/// several seconds.
const TRIES: u64 = 8;

/// Google's emulator, one that only this test knows, as long as the value lives.
struct Google {
    pid: String,
    port: u16,
}

impl Google {
    fn start() -> Self {
        // It takes no port 0; between this and its start somebody else may take the port, and then
        // the start fails.
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr();
        Self::start_at(free.unwrap().port())
    }

    fn start_at(port: u16) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../gcp-emulator/google/start");
        let output = Command::new(script)
            .arg(port.to_string())
            .stdin(Stdio::null())
            .output()
            .expect("the script can be run");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "it does not start: {errors}");
        let pid = String::from_utf8(output.stdout).unwrap();
        Self {
            pid: pid.trim().to_owned(),
            port,
        }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::emulator(&self.address()).unwrap()
    }

    /// By SIGKILL. Answers the port, which nobody listens on any more.
    async fn kill(self) -> u16 {
        let port = self.port;
        drop(self);
        until("nobody listens any more", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_err()
        })
        .await;
        port
    }
}

impl Drop for Google {
    fn drop(&mut self) {
        let killed = Command::new("kill").args(["-KILL", &self.pid]).status();
        // While a test fails already, that is what is to be read.
        assert!(
            std::thread::panicking() || killed.is_ok_and(|status| status.success()),
            "process {} remains",
            self.pid
        );
    }
}

#[tokio::test]
async fn a_source_outlives_a_killed_server_and_goes_on_without_a_flood_of_log_lines() {
    let google = Google::start();
    let door = Door::to(&google.address()).await;
    let world = World::at(google.endpoint(), "outage", |_| {}).await;
    world.publish_numbers(0..20).await;
    let mut source = world.source_by_way_of(door.endpoint()).build().unwrap();
    assert_eq!(read(&mut source, 20).await, (0..20).collect::<Vec<_>>());
    seal(&mut source, 1).await;
    // All of it is held over the restart, after which other messages come under the same ids.

    let (log, collecting) = Log::collect();
    let opened = source.stats().streams_opened;
    google.kill().await;
    until("the source tries again and again", || {
        source.stats().streams_opened >= opened + TRIES
    })
    .await;
    assert_eq!(source.stats().open_streams, 0);
    // Let in only when it has the subscription again: the source would end at the sight of a
    // server without it.
    door.shut();
    let google = Google::start();
    let world = World::at(google.endpoint(), "outage", |_| {}).await;
    door.open(&google.address());

    // Ids begin again at "1".
    world.publish_numbers(100..150).await;
    assert_eq!(read(&mut source, 50).await, (100..150).collect::<Vec<_>>());
    let committed = commit(&mut source, 1).await;
    assert_eq!((committed.settled, committed.lapsed), (0, 20));
    seal(&mut source, 2).await;
    let committed = commit(&mut source, 2).await;
    assert_eq!((committed.settled, committed.lapsed), (50, 0));
    drop(collecting);
    let tries = source.stats().streams_opened - opened;
    let (told, all) = (log.lines(Level::INFO), log.lines(Level::DEBUG));
    assert!(
        told.len() <= 4,
        "{tries} tries, and an operator reads {told:#?}"
    );
    assert!(
        told.iter()
            .any(|line| line.contains("fails again and again")),
        "{told:#?}"
    );
    assert!(
        all.len() as u64 <= 4 * tries + 8,
        "{} lines of {tries} tries: {all:#?}",
        all.len()
    );
    source.close().await.unwrap();
    world.assert_all_acknowledged().await;
}

#[tokio::test]
async fn a_server_that_comes_back_without_the_subscription_ends_the_source() {
    let google = Google::start();
    let world = World::at(google.endpoint(), "outage", |_| {}).await;
    world.publish_numbers(0..20).await;
    let mut source = world.source().build().unwrap();
    read(&mut source, 20).await;
    seal(&mut source, 1).await;
    let port = google.kill().await;
    let google = Google::start_at(port);
    let receipt = source.commit(Epoch::new(1));
    let error = last_word(&mut source).await;
    assert!(
        matches!(&error, SourceError::Missing { subscription, .. } if *subscription == world.subscription),
        "{error:?}"
    );
    // Whatever is not confirmed resolves all the same.
    let unconfirmed = tokio::time::timeout(LONG, receipt).await.unwrap();
    assert!(
        matches!(unconfirmed, Err(CheckpointError::Closed { .. })),
        "{unconfirmed:?}"
    );
    drop(google);
}
