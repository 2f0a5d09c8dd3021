//! The main job on Google's Pub/Sub emulator, the outside witness: the one that
//! `PUBSUB_EMULATOR_HOST` names, or one of its own. Needs a JDK and the emulator of the Cloud SDK,
//! and exists only with the feature `witness`.

#![expect(
    clippy::unwrap_used,
    reason = "a test and what it is made of fail by panicking"
)]

#[path = "google/way.rs"]
mod way;

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Parser;
use examples::orders::{self, Options, Program, Report};
use way::Way;

/// Google's emulator, as long as the value lives.
struct GoogleEmulator {
    /// The process, if it is ours to stop.
    pid: Option<String>,
    address: String,
}

impl GoogleEmulator {
    fn running_or_started() -> Self {
        match std::env::var("PUBSUB_EMULATOR_HOST") {
            Ok(address) if !address.is_empty() => Self { pid: None, address },
            Ok(_) | Err(_) => Self::start(),
        }
    }

    fn start() -> Self {
        // It takes no port 0; between this and its start somebody else may take the port, and then
        // the start fails.
        let port = TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../gcp-emulator/google/start");
        let output = Command::new(script)
            .arg(port.to_string())
            .stdin(Stdio::null())
            .output()
            .expect("the script can be run");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "Google's emulator does not start: {errors}"
        );
        let pid = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        Self {
            pid: Some(pid),
            address: format!("127.0.0.1:{port}"),
        }
    }
}

impl Drop for GoogleEmulator {
    fn drop(&mut self) {
        let Some(pid) = &self.pid else { return };
        let stopped = Command::new("kill").arg(pid).status();
        // While a test fails already, that is what is to be read.
        assert!(
            std::thread::panicking() || stopped.is_ok_and(|status| status.success()),
            "process {pid} remains"
        );
    }
}

async fn run(google: &GoogleEmulator, flags: &str) -> Report {
    let line = format!("orders --pubsub {} {flags}", google.address);
    let options = Options::try_parse_from(line.split_whitespace()).unwrap();
    orders::run(&options, &Program::at(env!("CARGO_BIN_EXE_orders-child")))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_on_googles_emulator_with_a_crash_and_without() {
    let google = GoogleEmulator::running_or_started();
    for (flags, restarts) in [
        ("--orders 1000 --checkpoint-interval 200ms", 0),
        (
            "--orders 1000 --checkpoint-interval 200ms --crash-after 400",
            1,
        ),
        (
            "--orders 1000 --checkpoint-interval 200ms --crash-after 400 --lose-state",
            1,
        ),
    ] {
        let report = run(&google, flags).await;
        assert_eq!(report.lost, 0, "{flags}: {report:#?}");
        assert_eq!(report.distinct_published, 1000, "{flags}: {report:#?}");
        assert_eq!(report.distinct_partner_orders, 1000, "{flags}: {report:#?}");
        assert_eq!(report.tasks_created, 1000, "{flags}: {report:#?}");
        assert_eq!(report.restarts, restarts, "{flags}: {report:#?}");
    }
}

/// Orders a second of the soak: what the emulator takes with room to spare.
const RATE: u64 = 100;

/// More than a pipeline needs for a checkpoint interval of them, whatever it has been through.
const MOST_MIB: f64 = 150.0;

/// Killed every 20 s, behind connections that break and go silent. `SOAK_SECS` says for how long.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_by_a_job_that_is_killed_again_and_again_on_a_bad_way_to_the_server() {
    let seconds = std::env::var("SOAK_SECS").ok();
    let seconds = seconds.map_or(90, |seconds| seconds.parse().unwrap());
    let google = GoogleEmulator::running_or_started();
    let way = Way::to(&google.address, Duration::from_secs(seconds)).await;
    let orders = RATE * seconds;
    let flags = format!(
        "--orders {orders} --rate {RATE} --kill-every 20s --pipeline-by {}",
        way.address
    );
    let report = run(&google, &flags).await;
    println!("{}", report.table());
    assert_eq!(report.lost, 0, "{report:#?}");
    assert_eq!(report.distinct_published, orders, "{report:#?}");
    assert_eq!(report.distinct_partner_orders, orders, "{report:#?}");
    assert_eq!(report.tasks_created, orders, "{report:#?}");
    assert!(report.restarts >= seconds / 25, "{report:#?}");
    assert!(
        report.peak_rss_mb.is_none_or(|peak| peak < MOST_MIB),
        "{report:#?}"
    );
}
