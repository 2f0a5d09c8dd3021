//! The throughput program, each mode against the server it starts for itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// Runs the program to its end.
fn throughput(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_throughput"))
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs one mode for a second, and reads its line.
fn run(mode: &[&str]) -> Value {
    run_for("1", "0.5", mode)
}

fn run_for(secs: &str, warm_up: &str, mode: &[&str]) -> Value {
    let output = throughput(&[mode, &["--secs", secs, "--warm-up", warm_up]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{mode:?}: {said}");
    let line = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// What a run that has to fail says, and its exit code.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = throughput(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?} measured something");
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), said)
}

/// What every line has, whatever the mode.
fn check(report: &Value) {
    for figure in [
        "messages",
        "seconds",
        "rate",
        "cpu_seconds",
        "cpu_seconds_per_million",
        "peak_rss_mb",
        "base_rss_mb",
    ] {
        let value = report[figure].as_f64();
        assert!(value.is_some_and(|value| value > 0.0), "{figure}: {report}");
    }
    for figure in ["held_max", "extended_ids", "suppressed", "errors"] {
        assert!(report[figure].is_u64(), "{figure}: {report}");
    }
    assert_eq!(report["errors"], 0, "{report}");
    let [p50, p95, p99] = ["p50_ms", "p95_ms", "p99_ms"].map(|name| report[name].as_f64().unwrap());
    assert!(p50 <= p95 && p95 <= p99, "{report}");
}

#[test]
fn receive_counts_what_it_took_between_checkpoints() {
    let report = run(&["receive", "--checkpoint-secs", "0.1"]);
    check(&report);
    assert_eq!(report["mode"], "receive");
    assert!(report["held_max"].as_u64() > Some(0), "{report}");
}

#[test]
fn receive_on_two_threads_and_streams_keeps_to_the_rate_of_the_server() {
    let report = run(&[
        "receive",
        "--threads",
        "2",
        "--streams",
        "2",
        "--rate",
        "500",
    ]);
    // One checkpoint a second by default: this may end before the first one is confirmed.
    assert!(report["messages"].as_u64() > Some(0), "{report}");
    assert!(report["rate"].as_f64() < Some(5000.0), "{report}");
}

#[test]
fn publish_counts_what_was_confirmed() {
    let report = run(&["publish", "--batch", "100", "--destinations", "3"]);
    check(&report);
    assert_eq!(report["mode"], "publish");
    let ordered = run(&["publish", "--batch", "10", "--ordering-keys", "20"]);
    check(&ordered);
}

#[test]
fn create_counts_what_was_created_singly_and_in_batches() {
    check(&run(&["create", "--named"]));
    let report = run(&[
        "create",
        "--batch",
        "100",
        "--channels",
        "2",
        "--server-delay-ms",
        "5",
    ]);
    check(&report);
    assert_eq!(report["mode"], "create");
}

#[test]
fn acknowledgements_held_for_longer_than_the_run_leave_no_more_than_is_outstanding() {
    // One that was taken after the default second would let more come.
    let held = ["--hold-secs", "60", "--outstanding", "700"];
    let at_once = ["--first-outstanding", "700"];
    let report = run_for("1.6", "0", &[&["receive"][..], &held, &at_once].concat());
    assert_eq!(report["messages"], 700, "{report}");
    assert!(report["p50_ms"].is_null(), "none is committed: {report}");
}

#[test]
fn acknowledgements_held_for_a_while_are_as_many_as_come_in_it() {
    let report = run(&["receive", "--hold-secs", "0.2", "--rate", "1000"]);
    let held = report["held_max"].as_u64().unwrap();
    assert!(held >= 100, "200 come in the time: {report}");
    assert!(report["p50_ms"].is_number(), "some are committed: {report}");
}

/// A server for load at a rate of its own, which ends with its standard input.
struct Slow(Child, String);

impl Slow {
    fn at(rate: &str) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_throughput"))
            .args(["flood", "--rate", rate])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self(server, line.trim_end().rsplit(' ').next().unwrap().into())
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn what_is_measured_is_the_server_at_the_endpoint() {
    let server = Slow::at("500");
    let own = ["--checkpoint-secs", "0.05"];
    let report = run(&[&["receive", "--endpoint", &server.1][..], &own].concat());
    // One of its own sends a hundred times as much.
    assert!(report["rate"].as_f64() < Some(5000.0), "{report}");
    for mode in ["publish", "create"] {
        check(&run_for("0.5", "0.2", &[mode, "--endpoint", &server.1]));
    }
}

#[test]
fn an_endpoint_without_a_server_is_an_error_when_the_time_is_over() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap().to_string();
    drop(listener);
    for mode in ["receive", "publish", "create"] {
        let time = ["--secs", "0.4", "--warm-up", "0.1"];
        let (code, said) = refused(&[&[mode, "--endpoint", &nobody][..], &time].concat());
        assert_eq!(code, Some(1), "{mode}: {said}");
        // What a connector logs comes before it.
        let last = said.lines().last().unwrap();
        let begins = "throughput: nothing came through in ";
        assert!(last.starts_with(begins), "{mode}: {said}");
        assert!(last.contains("is there a server"), "{mode}: {said}");
    }
}

#[test]
fn an_endpoint_that_is_none_is_one_line_that_quotes_it() {
    let none = [
        "nowhere",
        "127.0.0.1",
        "127.0.0.1:99999",
        "http://127.0.0.1:8085",
        "::1:8085",
        "two words:1",
        "",
    ];
    for mode in ["receive", "publish", "create"] {
        for endpoint in none {
            let (code, said) = refused(&[mode, "--endpoint", endpoint]);
            assert_eq!(code, Some(1), "{endpoint:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{endpoint:?}: {said}");
            assert!(said.starts_with("throughput: "), "{endpoint:?}: {said}");
            let quoted = format!("{endpoint:?}");
            assert!(said.contains(&quoted), "{quoted}: {said}");
        }
    }
}

#[test]
fn a_flag_that_cannot_be_followed_is_refused_by_its_name() {
    for (flag, value) in [
        ("--secs", "0"),
        ("--secs", "nan"),
        ("--warm-up", "-1"),
        ("--warm-up", "1e300"),
        ("--checkpoint-secs", "0"),
        ("--hold-secs", "soon"),
    ] {
        let (code, said) = refused(&["receive", &format!("{flag}={value}")]);
        assert_eq!(code, Some(2), "{flag} {value}: {said}");
        assert!(said.contains(flag), "{flag} {value}: {said}");
    }
    // A server that runs already is as it is, and acknowledgements are held for one time.
    let endpoint = ["--endpoint", "127.0.0.1:1"];
    for (mode, flags) in [
        (
            "receive",
            ["--payload-bytes", "1024", endpoint[0], endpoint[1]],
        ),
        (
            "receive",
            ["--per-response", "10", endpoint[0], endpoint[1]],
        ),
        (
            "create",
            ["--server-delay-ms", "5", endpoint[0], endpoint[1]],
        ),
        ("receive", ["--checkpoint-secs", "1", "--hold-secs", "1"]),
    ] {
        let (code, said) = refused(&[&[mode][..], &flags].concat());
        assert_eq!(code, Some(2), "{flags:?}: {said}");
        assert!(said.contains("cannot be used with"), "{flags:?}: {said}");
        assert!(said.contains(flags[0]) && said.contains(flags[2]), "{said}");
    }
}
