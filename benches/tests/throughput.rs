//! The throughput program, each mode against the server it starts for itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use serde_json::Value;

/// Runs one mode for a second, and reads its line.
fn run(mode: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_throughput"))
        .args(mode)
        .args(["--secs", "1", "--warm-up", "0.5"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{mode:?}: {said}");
    let line = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&line).unwrap()
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
fn an_endpoint_that_is_none_is_one_clear_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_throughput"))
        .args(["receive", "--endpoint", "nowhere"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("throughput: ") && said.contains("nowhere"),
        "{said}"
    );
}
