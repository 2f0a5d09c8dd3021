//! Tests that need an environment of their own.
//!
//! Only a new process can be given one safely, so such a test starts this binary again with itself
//! alone to run. The second run finds its [`role`] and does the work.

use std::ffi::OsStr;
use std::process::Command;

use gcp_wire::{Endpoint, EndpointError, Service};

const ROLE: &str = "GCP_WIRE_TEST_ROLE";

/// What this run is to play; `None` in the first one, which [`run`]s the others.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Runs `test` in a process with these variables set and no others that could matter to it.
pub(crate) fn run(test: &str, role: &str, variables: &[(&str, &OsStr)]) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env_remove("SSL_CERT_DIR")
        .env_remove("PUBSUB_EMULATOR_HOST")
        .env_remove("CLOUD_TASKS_EMULATOR_HOST")
        .envs(variables.iter().copied())
        .env(ROLE, role)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{test} as {role:?}: {text}"
    );
}

#[test]
fn an_emulators_variable_counts_only_where_the_host_asks_for_it() {
    let asked =
        |service| Endpoint::emulator_from_env(service).map(|it| it.map(|it| it.to_string()));
    match role().as_deref() {
        None => {
            let test = "environment::an_emulators_variable_counts_only_where_the_host_asks_for_it";
            let set = [
                ("PUBSUB_EMULATOR_HOST", OsStr::new("http://localhost:8085/")),
                ("CLOUD_TASKS_EMULATOR_HOST", OsStr::new("")),
            ];
            run(test, "set", &set);
            run(
                test,
                "malformed",
                &[("CLOUD_TASKS_EMULATOR_HOST", OsStr::new("localhost"))],
            );
        }
        Some("set") => {
            let named = Some("http://localhost:8085".to_owned());
            assert_eq!(asked(Service::Pubsub), Ok(named));
            assert_eq!(asked(Service::CloudTasks), Ok(None));
            let production = Endpoint::production(Service::Pubsub);
            assert!(!production.is_emulator());
            assert_eq!(production.to_string(), "https://pubsub.googleapis.com:443");
        }
        Some(_) => {
            assert_eq!(asked(Service::Pubsub), Ok(None), "it is not set");
            let value = "localhost".to_owned();
            let expected = EndpointError::Variable {
                variable: "CLOUD_TASKS_EMULATOR_HOST",
                cause: Box::new(EndpointError::MissingPort { value }),
            };
            assert_eq!(asked(Service::CloudTasks), Err(expected));
        }
    }
}
