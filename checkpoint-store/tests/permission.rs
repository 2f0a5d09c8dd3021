//! A directory that the process may not write to.
//!
//! The superuser may write everywhere, so the store is opened by this test binary started again as
//! nobody, from a copy that nobody can reach. In a file of its own: a process that is started while
//! another test still has the copy open for writing could not run it.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails where an expectation does")]

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::{Command, Stdio},
};

use checkpoint_store::FileStore;

const DIRECTORY: &str = "CHECKPOINT_STORE_TEST_DIRECTORY";
const NOBODY: u32 = 65534;
/// The test of this file, which takes the other part where it finds [`DIRECTORY`] set.
const TEST: &str = "a_directory_that_may_not_be_written_is_an_error_that_names_it";

/// What the other user's process does.
fn be_the_other(directory: OsString) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    match runtime.block_on(FileStore::open(directory)) {
        Ok(_) => println!("opened"),
        Err(error) => println!("{error}"),
    }
}

#[test]
fn a_directory_that_may_not_be_written_is_an_error_that_names_it() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return be_the_other(directory);
    }
    let directory = tempfile::tempdir().unwrap();
    let closed = directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    for (path, mode) in [(directory.path(), 0o755), (closed.as_path(), 0o555)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let binary = directory.path().join("binary");
    fs::copy(env::current_exe().unwrap(), &binary).unwrap();
    let mut command = Command::new(binary);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY);
    }
    let output = command
        .args(["--exact", "--nocapture", TEST])
        .env(DIRECTORY, &closed)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let text = format!("the store {} cannot be used", closed.display());
    assert!(said.contains(&text), "{said}");
    assert_eq!(fs::read_dir(&closed).unwrap().count(), 0);
}
