//! Two processes on one directory.
//!
//! The other process is this test binary, started again with the test [`ENTRY`] alone, which finds
//! [`DIRECTORY`] in its environment and takes the other part: it owns the store and does what it is
//! told on its standard input, one line each.

#![expect(clippy::unwrap_used, reason = "a test fails where an expectation does")]

use std::{
    env,
    ffi::OsString,
    io::{BufRead, BufReader, Lines, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use bytes::Bytes;
use checkpoint_store::{CheckpointStore, FileStore, StoreError};
use connector_core::Epoch;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// The test through which the other process comes in.
const ENTRY: &str = "the_second_process_hears_who_has_the_store";
const DIRECTORY: &str = "CHECKPOINT_STORE_TEST_DIRECTORY";
const SAYS: &str = "the other process: ";

fn state(epoch: u64) -> Bytes {
    Bytes::from(format!("state {epoch}"))
}

/// The other process, and the ends of its pipes.
struct Other {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(directory: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", ENTRY])
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            lines,
        }
    }

    fn tell(&mut self, what: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{what}").unwrap();
    }

    /// The next thing it says. Its end without a word ends the test.
    fn answer(&mut self) -> String {
        loop {
            let line = self
                .lines
                .next()
                .expect("the other process said nothing")
                .unwrap();
            if let Some((_, said)) = line.split_once(SAYS) {
                return said.to_owned();
            }
        }
    }

    fn ask(&mut self, what: &str) -> String {
        self.tell(what);
        self.answer()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Stops it and waits until it stands.
    fn stop(&self) {
        kill_process(self.pid(), Signal::STOP).unwrap();
        let (_, status) = waitpid(Some(self.pid()), WaitOptions::UNTRACED)
            .unwrap()
            .unwrap();
        assert!(status.stopped());
    }

    fn wake(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // The end of its input ends it; killed, because a failed test may leave it stopped.
        self.stdin = None;
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn say(what: impl std::fmt::Display) {
    // On a line of its own, whatever the test harness has begun to print.
    println!("\n{SAYS}{what}");
}

/// What the other process does.
async fn be_the_other(directory: OsString) {
    let mut store = match FileStore::open(directory).await {
        Ok(store) => store,
        Err(error) => return say(error),
    };
    say("open");
    for line in BufReader::new(std::io::stdin()).lines() {
        let line = line.unwrap();
        let (what, epoch) = line.split_once(' ').unwrap();
        let number = epoch.parse().unwrap();
        let epoch = Epoch::new(number);
        let done = match what {
            "save" => store.save(epoch, state(number)).await,
            "settled" => store.settled(epoch).await,
            "committing" => store.committing(epoch).await,
            other => panic!("{other}"),
        };
        match done {
            Ok(()) => say("done"),
            Err(error) => say(error),
        }
    }
}

#[tokio::test]
async fn a_second_process_is_refused_while_the_first_one_lives() {
    let directory = tempfile::tempdir().unwrap();
    let mut other = Other::start(directory.path());
    assert_eq!(other.answer(), "open");
    let error = FileStore::open(directory.path()).await.unwrap_err();
    let text = error.to_string();
    let StoreError::InUse { owner, .. } = error else {
        panic!("{text}");
    };
    assert_eq!(owner.unwrap().pid, other.child.id());
    assert!(
        text.contains(&format!("process {}", other.child.id())),
        "{text}"
    );
    assert!(
        text.contains(&directory.path().display().to_string()),
        "{text}"
    );
    assert_eq!(other.ask("save 1"), "done", "the owner is not disturbed");
}

#[tokio::test]
async fn the_second_process_hears_who_has_the_store() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return be_the_other(directory).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path()).await.unwrap();
    let said = Other::start(directory.path()).answer();
    assert!(
        said.contains(&format!("in use by process {}", std::process::id())),
        "{said}"
    );
    store.close().await;
    assert_eq!(Other::start(directory.path()).answer(), "open");
}

#[tokio::test]
async fn a_killed_process_leaves_the_store_to_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let mut other = Other::start(directory.path());
    assert_eq!(other.answer(), "open");
    assert_eq!(other.ask("save 1"), "done");
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    let store = FileStore::open(directory.path()).await.unwrap();
    let newest = store.newest().await.unwrap().unwrap();
    assert_eq!((newest.epoch, newest.state), (Epoch::new(1), state(1)));
}

#[tokio::test]
async fn a_stopped_process_that_wakes_after_its_successor_took_over_can_neither_save_nor_mark() {
    let directory = tempfile::tempdir().unwrap();
    let mut other = Other::start(directory.path());
    assert_eq!(other.answer(), "open");
    assert_eq!(other.ask("save 7"), "done");
    other.stop();
    // What it is told now it does when it wakes.
    for what in ["save 8", "committing 7", "settled 7", "save 9"] {
        other.tell(what);
    }

    let error = FileStore::open(directory.path()).await.unwrap_err();
    assert!(
        matches!(error, StoreError::InUse { .. }),
        "a stopped process lives: {error}"
    );
    let mut successor = FileStore::take_over(directory.path()).await.unwrap();
    assert_eq!(
        successor.newest().await.unwrap().unwrap().epoch,
        Epoch::new(7)
    );
    successor
        .save(Epoch::new(8), Bytes::from("the successor's"))
        .await
        .unwrap();

    other.wake();
    for _ in 0..4 {
        let said = other.answer();
        assert!(said.contains("taken over by process"), "{said}");
        assert!(said.contains(&std::process::id().to_string()), "{said}");
        assert!(said.contains("without committing"), "{said}");
    }
    for store in [
        &successor,
        &FileStore::take_over(directory.path()).await.unwrap(),
    ] {
        let Ok(newest) = store.newest().await else {
            continue;
        };
        let newest = newest.unwrap();
        assert_eq!(newest.epoch, Epoch::new(8));
        assert_eq!(newest.state, "the successor's");
        assert!(!newest.settled);
    }
}

#[tokio::test]
async fn a_process_stopped_in_the_middle_of_its_writes_does_not_hold_up_its_successor() {
    let directory = tempfile::tempdir().unwrap();
    let mut other = Other::start(directory.path());
    assert_eq!(other.answer(), "open");
    for round in 0..10 {
        // Enough work that the stop falls into it, at a place that differs from round to round.
        let first = round * 1000 + 1;
        for epoch in first..first + 20 {
            other.tell(&format!("save {epoch}"));
        }
        let mut done = 0;
        for _ in 0..=round {
            assert_eq!(other.answer(), "done");
            done += 1;
        }
        other.stop();
        let successor = FileStore::take_over(directory.path()).await.unwrap();
        let newest = successor.newest().await.unwrap().unwrap();
        other.wake();
        while done < 20 {
            let said = other.answer();
            if said != "done" {
                assert!(said.contains("taken over"), "{said}");
                break;
            }
            done += 1;
        }
        // Every save that was answered with success is one that the successor saw.
        assert!(
            newest.epoch.get() + 1 >= first + done,
            "{newest:?} after {done} saves"
        );
        assert_eq!(
            successor.newest().await.unwrap().unwrap(),
            newest,
            "nothing came late"
        );
        successor.close().await;
        other = Other::start(directory.path());
        assert_eq!(other.answer(), "open");
    }
}
