//! Google's emulator, one that only one test knows.

use std::{
    net::TcpListener,
    process::{Command, Stdio},
    time::Duration,
};

/// Runs as long as the value lives.
pub(crate) struct Google {
    pid: String,
    pub(crate) port: u16,
}

impl Google {
    pub(crate) fn start() -> Self {
        // It takes no port 0; between this and its start somebody else may take the port, and then
        // the start fails.
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr();
        Self::start_at(free.unwrap().port())
    }

    pub(crate) fn start_at(port: u16) -> Self {
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

    /// By SIGKILL. Answers the port, which nobody listens on any more.
    pub(crate) async fn kill(self) -> u16 {
        let port = self.port;
        drop(self);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
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
