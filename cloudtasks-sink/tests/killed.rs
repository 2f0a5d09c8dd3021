//! A process that is killed again and again while it creates tasks once.
//!
//! The parent is the service, over real sockets, and kills. The child is this test binary, started
//! again with the test [`ENTRY`] alone: it stages numbers in checkpoints of a `FileStore`, and commits
//! them. The parent knows what was staged from the checkpoints themselves.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails; it reads clocks"
)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use checkpoint_store::{CheckpointStore, FileStore, Progress};
use cloudtasks_sink::{Batch, CloudTasksSink, Delivery, Endpoint, HttpTask, QueueName, SinkState};
use connector_core::host::{Admission, Keep, Room, Settling, finish};
use connector_core::{Checkpoint, Epoch, settle};
use futures::stream::FuturesUnordered;
use futures::{SinkExt, StreamExt, future::poll_fn};
use gcp_emulator::{Emulator, Method};
use gcp_wire::proto::tasks::{
    ListTasksRequest, PauseQueueRequest, Task, task::MessageType, task::View,
};
use gcp_wire::{Connection, ConnectionOptions, Credentials, method};
use prost::Message;

/// The test through which the child comes in.
const ENTRY: &str = "the_child_creates_tasks_until_it_is_killed";
const DIRECTORY: &str = "CLOUDTASKS_SINK_TEST_DIRECTORY";
const SERVER: &str = "CLOUDTASKS_SINK_TEST_SERVER";
const BATCHED: &str = "CLOUDTASKS_SINK_TEST_BATCHED";

const QUEUE: &str = "projects/demo/locations/us-central1/queues/paused";
const RECORDS: u32 = 20_000;
const KILLS: u32 = 10;

/// Far above what two busy cores need for all of it.
const LIMIT: Duration = Duration::from_secs(300);

fn queue() -> QueueName {
    QUEUE.parse().unwrap()
}

fn endpoint(server: &str) -> Endpoint {
    Endpoint::emulator(server).unwrap()
}

fn journal_of(directory: &Path) -> PathBuf {
    directory.join("staged")
}

fn call(number: u32) -> HttpTask {
    HttpTask::put("https://partner.example/orders")
        .unwrap()
        .segment(number.to_string())
        .header("X-Number", number.to_string())
        .body(format!("{{\"number\":{number}}}"))
}

/// What the child saves: how many numbers it has read, and its sink's part.
type Saved = (u32, SinkState);

/// Writes what is staged into the journal, then saves it: what the journal lacks was never durable.
async fn save(store: &mut FileStore, journal: &Path, epoch: Epoch, saved: &Saved) {
    let mut lines = String::new();
    for task in saved.1.tasks() {
        let bytes: Vec<String> = task.task().iter().map(u8::to_string).collect();
        lines.push_str(&format!("{} {}\n", task.name(), bytes.join(",")));
    }
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(journal)
        .unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    let bytes = postcard::to_stdvec(saved).unwrap();
    store.save(epoch, bytes.into()).await.unwrap();
}

async fn child(directory: &Path, server: &str, batched: bool) {
    let journal = journal_of(directory);
    let mut store = FileStore::open(directory.join("checkpoints"))
        .await
        .unwrap();
    let progress = store.progress().await.unwrap();
    let untouched = matches!(progress, Some((_, Progress::Saved)));
    let newest = store.newest().await.unwrap();
    let restored =
        newest.map(|newest| newest.map(|bytes| postcard::from_bytes::<Saved>(&bytes).unwrap()));
    let restored = restored_parts(restored, untouched);
    if let Some((epoch, Progress::Saved)) = progress {
        store.committing(epoch).await.unwrap();
    }
    let (mut epoch, mut read, states) = restored;
    let mut builder = CloudTasksSink::builder(|number: &u32| Ok(Some(call(*number))))
        .queue(queue())
        .endpoint(endpoint(server))
        .delivery(Delivery::Staged {
            name_retention: Duration::from_secs(3_600),
        })
        .restore(states);
    if batched {
        builder = builder.batching(Batch::up_to(100));
    }
    let mut sink = builder.build().unwrap();
    let mut commits: FuturesUnordered<Settling> = FuturesUnordered::new();
    let mut uncut = 0;
    while read < RECORDS {
        let room = tokio::select! { biased;
            Some(done) = commits.next() => {
                store.settled(done.unwrap()).await.unwrap();
                continue;
            }
            room = poll_fn(|cx| sink.poll_room(cx)) => room.unwrap(),
        };
        if room == Room::Ready {
            sink.start_send_unpin(read).unwrap();
            (read, uncut) = (read + 1, uncut + 1);
        }
        if room == Room::CheckpointWanted || uncut == 250 {
            epoch = epoch.next();
            let state = sink.snapshot(epoch).await.unwrap();
            save(&mut store, &journal, epoch, &(read, state)).await;
            store.committing(epoch).await.unwrap();
            commits.push(settle(epoch, [sink.commit(epoch)]));
            uncut = 0;
        }
    }
    finish(&mut sink, epoch, async |step| match step {
        Keep::Save(epoch, state) => {
            save(&mut store, &journal, epoch, &(read, state)).await;
            Ok(())
        }
        Keep::Committing(epoch) => store.committing(epoch).await,
        Keep::Settled(epoch) => store.settled(epoch).await,
    })
    .await
    .unwrap();
    sink.close().await.unwrap();
}

type Parts = (Epoch, u32, Option<connector_core::Restored<SinkState>>);

fn restored_parts(restored: Option<connector_core::Restored<Saved>>, untouched: bool) -> Parts {
    let Some(restored) = restored else {
        return (Epoch::default(), 0, None);
    };
    let (epoch, read) = (restored.epoch, restored.state.0);
    let state = restored.map(|(_, state)| state).committing(!untouched);
    (epoch, read, Some(state))
}

#[test]
fn the_child_creates_tasks_until_it_is_killed() {
    // Run by itself, this test has no part to play.
    let (Ok(directory), Ok(server)) = (std::env::var(DIRECTORY), std::env::var(SERVER)) else {
        return;
    };
    let batched = std::env::var(BATCHED).is_ok();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(child(Path::new(&directory), &server, batched));
}

fn start(directory: &Path, server: &str, batched: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "--nocapture", ENTRY])
        .env(DIRECTORY, directory)
        .env(SERVER, server)
        .stdout(Stdio::null());
    if batched {
        command.env(BATCHED, "1");
    }
    command.spawn().unwrap()
}

/// What was ever staged, by name. The last line may be cut off: its checkpoint was never saved.
fn staged(journal: &Path) -> BTreeMap<String, Task> {
    let text = std::fs::read_to_string(journal).unwrap();
    let mut staged: BTreeMap<String, Task> = BTreeMap::new();
    for line in text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
    {
        let (name, bytes) = line.trim_end().split_once(' ').unwrap();
        let bytes: Vec<u8> = bytes.split(',').map(|byte| byte.parse().unwrap()).collect();
        let task = Task::decode(bytes.as_slice()).unwrap();
        assert_eq!(task.encode_to_vec(), bytes);
        let before = staged.insert(name.to_owned(), task.clone());
        assert!(
            before.is_none_or(|before| before == task),
            "what is staged under a name never changes"
        );
    }
    staged
}

/// Every task of the queue, in full.
async fn list(connection: &Connection) -> Vec<Task> {
    let mut tasks = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = ListTasksRequest {
            parent: QUEUE.to_owned(),
            response_view: View::Full.into(),
            page_size: 1_000,
            page_token,
        };
        let limit = Duration::from_secs(20);
        let page = connection
            .call(&method::LIST_TASKS, QUEUE, request, limit)
            .await
            .unwrap();
        tasks.extend(page.tasks);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return tasks;
        }
    }
}

/// Without what the service fills in.
fn as_sent(mut task: Task) -> Task {
    task.create_time = None;
    task.schedule_time = None;
    task.dispatch_deadline = None;
    task.view = View::Unspecified.into();
    if let Some(MessageType::HttpRequest(request)) = &mut task.message_type {
        request.headers.remove("User-Agent");
    }
    task
}

async fn kill_again_and_again(batched: bool) {
    let directory = tempfile::tempdir().unwrap();
    let emulator = Emulator::builder()
        .queue(QUEUE)
        .listen("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let server = emulator.local_addr().unwrap().to_string();
    let options = ConnectionOptions::default();
    let connection = Connection::unary(
        endpoint(&server),
        Credentials::application_default(),
        options,
    )
    .unwrap();
    let name = QUEUE.to_owned();
    let paused = connection.call(
        &method::PAUSE_QUEUE,
        QUEUE,
        PauseQueueRequest { name },
        LIMIT,
    );
    paused.await.unwrap();

    let started = Instant::now();
    let mut random = fastrand::Rng::new();
    for kill in 0..KILLS {
        let mut child = start(directory.path(), &server, batched);
        // Somewhere in its part of the work, or a moment after.
        let share = u64::from(RECORDS / (KILLS + 1));
        let there = u64::from(kill) * share + random.u64(1..=share);
        let reached = emulator
            .wait_until(
                |seen| seen.queue(QUEUE).created.len() as u64 >= there,
                LIMIT,
            )
            .await;
        assert!(reached, "kill {kill}: not {there} tasks in {LIMIT:?}");
        tokio::time::sleep(Duration::from_micros(random.u64(..20_000))).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let survivor = start(directory.path(), &server, batched);
    let outcome = tokio::task::spawn_blocking(move || {
        let mut survivor = survivor;
        survivor.wait().unwrap()
    });
    assert!(outcome.await.unwrap().success());

    let tasks = list(&connection).await;
    assert_eq!(tasks.len(), usize::try_from(RECORDS).unwrap());
    let staged = staged(&journal_of(directory.path()));
    let mut seen = vec![0; tasks.len()];
    for task in tasks {
        let before = &staged[&task.name];
        let task = as_sent(task);
        assert_eq!(task.encode_to_vec(), before.encode_to_vec());
        let Some(MessageType::HttpRequest(request)) = &task.message_type else {
            panic!("no HTTP task: {task:?}");
        };
        let number: usize = request.headers["X-Number"].parse().unwrap();
        seen[number] += 1;
    }
    assert!(seen.iter().all(|times| *times == 1), "each number once");
    println!(
        "{RECORDS} tasks over {KILLS} kills in {:?}; {} were staged, {} creations asked for",
        started.elapsed(),
        staged.len(),
        emulator.observe().count(Method::CreateTask)
            + emulator.observe().count(Method::BatchCreateTasks),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_tasks_exist_once_each_although_the_process_is_killed_ten_times() {
    kill_again_and_again(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_batches_they_exist_once_each_too() {
    kill_again_and_again(true).await;
}
