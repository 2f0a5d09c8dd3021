//! The main job on Google's Pub/Sub emulator, the outside witness: the one that
//! `PUBSUB_EMULATOR_HOST` names, or one of its own. Needs a JDK and the emulator of the Cloud SDK,
//! and exists only with the feature `witness`.

#![expect(
    clippy::unwrap_used,
    reason = "a test and what it is made of fail by panicking"
)]

use std::net::TcpListener;
use std::process::{Command, Stdio};

use clap::Parser;
use examples::orders::{self, Options, Program, Report};

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
