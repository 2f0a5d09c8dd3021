//! A test that starts itself again as other processes.
//!
//! A process that runs a role is the test's own executable, told by its environment what to do. It
//! speaks in lines that begin with a mark, since the test harness writes to the same output.

use std::{
    env,
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

const ROLE: &str = "PUBSUB_SOURCE_TEST_ROLE";
const MARK: char = '@';

/// The role of this process; none for the test itself.
pub fn role() -> Option<Vec<String>> {
    let role = env::var(ROLE).ok()?;
    Some(role.split(' ').map(str::to_owned).collect())
}

/// Says something to the test.
pub fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    // A test that is gone listens to nobody.
    drop(writeln!(out, "\n{MARK}{what}"));
    drop(out.flush());
}

/// A process with a role. It is killed when this is dropped.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Process {
    /// Starts `test`, the name of the calling test, in a role.
    pub fn start(test: &str, role: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            input: child.stdin.take(),
            lines: Some(lines),
            child,
        }
    }

    /// The next thing the process says; nothing once it is gone.
    pub fn hear(&mut self) -> Option<String> {
        hear(self.lines.as_mut()?)
    }

    /// Calls `heard` with everything the process says, on a thread of its own.
    pub fn listen(&mut self, mut heard: impl FnMut(String) + Send + 'static) {
        let mut lines = self.lines.take().expect("somebody listens already");
        std::thread::spawn(move || {
            while let Some(line) = hear(&mut lines) {
                heard(line);
            }
        });
    }

    /// Tells the process something.
    pub fn tell(&mut self, what: &str) {
        let input = self.input.as_mut().expect("its input is open");
        writeln!(input, "{what}").unwrap();
        input.flush().unwrap();
    }

    /// Kills the process at once: it can do nothing about it.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn hear(lines: &mut Lines<BufReader<ChildStdout>>) -> Option<String> {
    lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix(MARK).map(str::to_owned))
}
