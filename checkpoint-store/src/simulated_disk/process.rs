//! The directory as one process has it.

use std::{
    ffi::OsString,
    fs::TryLockError,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::files::{Change, Files};
use crate::file_store::{Disk, FileHandle, OpenFile};

/// A process that has the directory open.
#[derive(Debug)]
pub(super) struct Process {
    files: Arc<Mutex<Files>>,
    life: u64,
}

/// A file that it has open. Its lock goes with it.
#[derive(Debug)]
struct Opened {
    files: Arc<Mutex<Files>>,
    life: u64,
    content: usize,
    handle: u64,
}

fn lock(files: &Mutex<Files>) -> MutexGuard<'_, Files> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    pub(super) fn new(files: Arc<Mutex<Files>>, life: u64) -> Self {
        Self { files, life }
    }

    fn opened(&self, files: &mut Files, content: usize) -> FileHandle {
        Box::new(Opened {
            files: Arc::clone(&self.files),
            life: self.life,
            content,
            handle: files.handle(),
        })
    }

    /// A step that changes names.
    fn change(&self, change: impl FnOnce(&Files) -> io::Result<Change>) -> io::Result<()> {
        let mut files = lock(&self.files);
        let unreported = files.step(self.life, false)?;
        let change = change(&files)?;
        files.change(change);
        Files::report(unreported)
    }
}

impl Disk for Process {
    fn path(&self) -> &Path {
        Path::new("simulated")
    }

    fn list(&self) -> io::Result<Vec<OsString>> {
        let mut files = lock(&self.files);
        Files::report(files.step(self.life, false)?)?;
        Ok(files.names.keys().map(OsString::from).collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut files = lock(&self.files);
        Files::report(files.step(self.life, false)?)?;
        let content = files.content(name)?;
        Ok(files.bytes(content).to_vec())
    }

    fn open(&self, name: &str) -> io::Result<FileHandle> {
        let mut files = lock(&self.files);
        Files::report(files.step(self.life, false)?)?;
        let content = files.content(name)?;
        Ok(self.opened(&mut files, content))
    }

    fn create(&self, name: &str, parts: &[&[u8]]) -> io::Result<FileHandle> {
        let mut files = lock(&self.files);
        if files.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut bytes = parts.concat();
        match files.step(self.life, true) {
            Ok(unreported) => {
                let content = files.make(name, bytes);
                Files::report(unreported)?;
                Ok(self.opened(&mut files, content))
            }
            Err(error) => {
                if self.life == files.life {
                    bytes.truncate(bytes.len() / 2);
                    files.make(name, bytes);
                }
                Err(error)
            }
        }
    }

    fn sync_file(&self, _: &str, file: &dyn OpenFile) -> io::Result<()> {
        file.sync()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change(|files| {
            Ok(Change {
                takes: Some(from.to_owned()),
                gives: Some((to.to_owned(), files.content(from)?)),
            })
        })
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.change(|files| {
            if files.names.contains_key(to) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            Ok(Change {
                takes: None,
                gives: Some((to.to_owned(), files.content(from)?)),
            })
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change(|files| {
            files.content(name)?;
            Ok(Change {
                takes: Some(name.to_owned()),
                gives: None,
            })
        })
    }

    fn sync(&self) -> io::Result<()> {
        let mut files = lock(&self.files);
        let unreported = files.step(self.life, false)?;
        files.sync_names();
        Files::report(unreported)
    }
}

impl OpenFile for Opened {
    fn try_lock(&self) -> Result<(), TryLockError> {
        let mut files = lock(&self.files);
        let stepped = files.step(self.life, false).and_then(Files::report);
        stepped.map_err(TryLockError::Error)?;
        let locked = files.locked(self.content);
        if locked.is_some_and(|handle| handle != self.handle) {
            return Err(TryLockError::WouldBlock);
        }
        *locked = Some(self.handle);
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        let mut files = lock(&self.files);
        let locked = files.locked(self.content);
        if *locked == Some(self.handle) {
            *locked = None;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut files = lock(&self.files);
        let unreported = files.step(self.life, false)?;
        files.sync_content(self.content);
        Files::report(unreported)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // A process that ended has lost its locks; what has the file now is another one's.
        let mut files = lock(&self.files);
        let locked = files.locked(self.content);
        if *locked == Some(self.handle) {
            *locked = None;
        }
    }
}
