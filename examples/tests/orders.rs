//! The main job with small numbers: with and without a crash, and with what can be wrong around it.

#![expect(
    clippy::unwrap_used,
    reason = "a test and what it is made of fail by panicking"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use clap::Parser;
use examples::orders::{self, Options, OrdersError, Program, Report};
use gcp_emulator::{Emulator, Method};

async fn run(arguments: &str) -> Result<Report, OrdersError> {
    let arguments = std::iter::once("orders").chain(arguments.split_whitespace());
    let options = Options::try_parse_from(arguments).unwrap();
    orders::run(&options, &Program::at(env!("CARGO_BIN_EXE_orders-child"))).await
}

fn assert_nothing_is_missing(report: &Report, orders: u64, unrouted: u64) {
    assert_eq!(report.lost, 0, "{report:#?}");
    assert_eq!(report.orders, orders, "{report:#?}");
    assert_eq!(report.unrouted, unrouted, "{report:#?}");
    assert_eq!(report.distinct_published, orders, "{report:#?}");
    assert_eq!(
        report.distinct_partner_orders,
        orders - unrouted,
        "{report:#?}"
    );
    // Named by the event: a second task for an order is refused, whatever was repeated.
    assert_eq!(report.tasks_created, orders - unrouted, "{report:#?}");
    assert_eq!(
        report.published_to_regions,
        orders + report.duplicate_publishes,
        "{report:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_crash_every_order_arrives_exactly_once() {
    let report = run("--orders 300 --checkpoint-interval 200ms")
        .await
        .unwrap();
    assert_nothing_is_missing(&report, 300, 0);
    assert_eq!(report.duplicate_publishes, 0, "{report:#?}");
    assert_eq!(report.partner_calls, 300, "{report:#?}");
    assert_eq!(report.restarts, 0, "{report:#?}");
    assert!(report.checkpoints >= 2, "{report:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_the_middle_loses_nothing() {
    let report = run("--orders 300 --checkpoint-interval 200ms --crash-after 120")
        .await
        .unwrap();
    assert_nothing_is_missing(&report, 300, 0);
    assert_eq!(report.restarts, 1, "{report:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_batches_loses_nothing_and_calls_no_partner_twice() {
    let report = run("--orders 300 --checkpoint-interval 200ms --crash-after 120 --batch")
        .await
        .unwrap();
    assert_nothing_is_missing(&report, 300, 0);
    assert_eq!(report.restarts, 1, "{report:#?}");
    assert_eq!(report.partner_calls, 300, "{report:#?}");
}

/// Each task has a name of its own that only its checkpoint knows: nothing but that keeps an order
/// that is read again from making a second one.
#[tokio::test(flavor = "multi_thread")]
async fn staged_tasks_are_created_once_whatever_crashes_alone_or_in_batches() {
    for batch in ["", " --batch"] {
        let report = run(&format!(
            "--orders 300 --checkpoint-interval 200ms --crash-after 120 --exactly-once{batch}"
        ))
        .await
        .unwrap();
        assert_nothing_is_missing(&report, 300, 0);
        assert_eq!(report.restarts, 1, "{report:#?}");
        assert_eq!(report.partner_calls, 300, "{report:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_that_takes_the_state_along_loses_nothing() {
    let report = run("--orders 300 --checkpoint-interval 200ms --crash-after 120 --lose-state");
    let report = report.await.unwrap();
    assert_nothing_is_missing(&report, 300, 0);
    assert_eq!(report.restarts, 1, "{report:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_without_a_route_is_published_and_calls_nobody() {
    let report = run("--orders 300 --checkpoint-interval 200ms --unrouted-share 0.1").await;
    let report = report.unwrap();
    assert!((1..150).contains(&report.unrouted), "{report:#?}");
    assert_nothing_is_missing(&report, 300, report.unrouted);
    assert_eq!(report.partner_calls, 300 - report.unrouted, "{report:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_running_is_used_and_left_as_it_was() {
    let server = Emulator::builder()
        .listen(([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    let pubsub = server.local_addr().unwrap();
    let (mut tasks_server, tasks) = tasks_server();
    let flags =
        format!("--orders 100 --checkpoint-interval 200ms --pubsub {pubsub} --tasks {tasks}");
    for _repeated in 0..2 {
        assert_nothing_is_missing(&run(&flags).await.unwrap(), 100, 0);
    }
    // Its standard input is its leash.
    drop(tasks_server.stdin.take());
    assert!(tasks_server.wait().unwrap().success());
    let seen = server.observe();
    assert_eq!(seen.count(Method::CreateTopic), 10);
    assert_eq!(seen.count(Method::DeleteTopic), 10);
    assert_eq!(seen.count(Method::CreateSubscription), 10);
    assert_eq!(seen.count(Method::DeleteSubscription), 10);
    let pipelines = seen
        .subscriptions
        .iter()
        .filter(|(name, _)| name.ends_with("orders-pipeline"));
    for (name, subscription) in pipelines {
        assert_eq!(
            subscription.acks, 100,
            "{name} was not drained before it was deleted"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_directory_serves_one_run_after_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let flags = format!(
        "--orders 100 --checkpoint-interval 200ms --state {}",
        directory.path().join("state").display()
    );
    for _repeated in 0..2 {
        let report = run(&flags).await.unwrap();
        assert_nothing_is_missing(&report, 100, 0);
        // Counted from where the run before it ended.
        assert!((1..100).contains(&report.checkpoints), "{report:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_is_one_error_that_names_what_was_wanted_of_it() {
    // Port 1 belongs to a service that nobody runs.
    let error = run("--orders 10 --pubsub 127.0.0.1:1").await.unwrap_err();
    assert!(matches!(error, OrdersError::Create { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("could not be created; no order was published"),
        "{text}"
    );
}

/// A Cloud Tasks server without queues, and its address.
fn tasks_server() -> (Child, String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_orders-child"))
        .arg("tasks-server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    server.stdin.as_mut().unwrap().write_all(b"[]\n").unwrap();
    let mut address = String::new();
    let stdout = server.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut address).unwrap();
    (server, address.trim().to_owned())
}

/// The program as a person starts it.
fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_orders-child"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn the_last_line_of_the_output_is_the_json_object() {
    let output = program(&["--orders", "50", "--checkpoint-interval", "200ms", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = String::from_utf8(output.stdout).unwrap();
    let last: serde_json::Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    assert_eq!(last["orders"], 50);
    assert_eq!(last["lost"], 0);
    assert_eq!(last["distinct_partner_orders"], 50);
    assert!(
        output.contains("partner calls"),
        "the table comes before it:\n{output}"
    );
}

#[test]
fn an_error_is_one_line_and_exit_code_2() {
    let output = program(&["--orders", "50", "--pubsub", "localhost"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("\"localhost\" has no port"), "{text}");
}

/// The program with pipes for what it writes, when it has begun to read orders.
fn begun(arguments: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_orders-child"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut progress = String::new();
    stderr.read_line(&mut progress).unwrap();
    assert!(progress.contains("published to regions"), "{progress}");
    (child, stderr)
}

#[test]
fn readers_that_left_change_nothing_about_the_run() {
    let (mut child, stderr) = begun(&["--orders", "50", "--checkpoint-interval", "200ms"]);
    drop((child.stdout.take(), stderr));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_run_that_is_told_to_end_takes_a_last_checkpoint() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().to_str().unwrap();
    let flags = ["--checkpoint-interval", "5m", "--state", path];
    let (mut child, mut stderr) = begun(&flags);
    let pid = child.id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());

    let mut text = String::new();
    stderr.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{text}");
    assert!(text.contains("took its last checkpoint"), "{text}");
    let checkpoints = files(state.path());
    let checkpoints = checkpoints.iter().map(|(name, _)| name);
    let checkpoints: Vec<_> = checkpoints
        .filter(|n| n.starts_with("checkpoint-"))
        .collect();
    assert_eq!(checkpoints.len(), 1, "{checkpoints:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_created_before_a_refusal_is_deleted_again() {
    let server = Emulator::builder()
        .listen(([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    let address = server.local_addr().unwrap();
    let flags = format!("--orders 5 --pubsub {address} --tasks 127.0.0.1:1");
    let error = run(&flags).await.unwrap_err();
    assert!(matches!(error, OrdersError::Create { .. }), "{error:?}");
    let seen = server.observe();
    let (created, deleted) = (Method::CreateTopic, Method::DeleteTopic);
    let count = |method| seen.requests.iter().filter(|r| r.method == method).count();
    assert!(count(created) > 0);
    assert_eq!(count(created), count(deleted));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_checkpoint_is_one_error_and_stays_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let flags = format!(
        "--orders 100 --checkpoint-interval 200ms --state {}",
        state.display()
    );
    run(&flags).await.unwrap();

    let newest = files(&state)
        .into_iter()
        .filter(|(name, _)| name.starts_with("checkpoint-"))
        .max()
        .expect("a run leaves its newest state");
    let half = &newest.1[..newest.1.len() / 2];
    std::fs::write(state.join(&newest.0), half).unwrap();

    let error = run(&flags).await.unwrap_err();
    let source = std::error::Error::source(&error)
        .expect("what the store said")
        .to_string();
    assert!(matches!(error, OrdersError::State { .. }), "{error:?}");
    assert!(
        source.contains(&newest.0),
        "the file is not named: {source}"
    );
    assert!(
        source.contains("deleting it"),
        "what deleting it costs is not said: {source}"
    );
    assert_eq!(std::fs::read(state.join(&newest.0)).unwrap(), half);
}

fn files(directory: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect()
}
