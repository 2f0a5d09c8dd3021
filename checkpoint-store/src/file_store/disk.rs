//! One directory, and the few things that are done to it.

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// An open file: what is locked, and what is synced.
pub(crate) trait OpenFile: fmt::Debug + Send + Sync {
    /// Locks the file for its handle alone, without waiting.
    fn try_lock(&self) -> Result<(), TryLockError>;
    /// Gives the lock up before the handle goes.
    fn unlock(&self) -> io::Result<()>;
    /// Makes the content durable.
    fn sync(&self) -> io::Result<()>;
}

impl OpenFile for File {
    fn try_lock(&self) -> Result<(), TryLockError> {
        Self::try_lock(self)
    }

    fn unlock(&self) -> io::Result<()> {
        Self::unlock(self)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }
}

/// The handle of a file of some disk.
pub(crate) type FileHandle = Box<dyn OpenFile>;

/// A directory, one system call per method, so that a test can stop between any two of them.
///
/// A name counts only after its directory was synced, a content only after its file was.
pub(crate) trait Disk: fmt::Debug + Send + Sync {
    /// The directory itself, for error texts.
    fn path(&self) -> &Path;
    /// The names in the directory.
    fn list(&self) -> io::Result<Vec<OsString>>;
    /// A file's content.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// A file's handle, for its lock.
    fn open(&self, name: &str) -> io::Result<FileHandle>;
    /// Makes a new file. Its content is not durable yet.
    fn create(&self, name: &str, parts: &[&[u8]]) -> io::Result<FileHandle>;
    /// Makes a file's content durable.
    fn sync_file(&self, name: &str, file: &dyn OpenFile) -> io::Result<()>;
    /// Gives a file its final name in one step, in place of what had it before.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Gives a file a second name in one step, unless the name is taken.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;
    /// Takes a name away.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes names given and taken so far durable.
    fn sync(&self) -> io::Result<()>;
}

/// A directory of the local file system.
#[derive(Debug)]
pub(crate) struct LocalDisk {
    directory: PathBuf,
}

impl LocalDisk {
    /// Opens the directory, and makes it durably where it does not exist yet.
    pub(crate) fn open(directory: PathBuf) -> io::Result<Self> {
        make(&directory)?;
        Ok(Self { directory })
    }
}

/// Makes a directory with its parents. A new one is durable once its parent was synced.
fn make(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = match directory.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Err(io::ErrorKind::NotADirectory.into()),
    };
    make(parent)?;
    match fs::create_dir(directory) {
        // Another process may have made it in between.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
        made => made?,
    }
    File::open(parent)?.sync_all()
}

impl Disk for LocalDisk {
    fn path(&self) -> &Path {
        &self.directory
    }

    fn list(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(&self.directory)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.directory.join(name))
    }

    fn open(&self, name: &str) -> io::Result<FileHandle> {
        // Writable, because some network file systems give an exclusive lock to no other handle.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.directory.join(name))?;
        Ok(Box::new(file))
    }

    fn create(&self, name: &str, parts: &[&[u8]]) -> io::Result<FileHandle> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(self.directory.join(name))?;
        for part in parts {
            file.write_all(part)?;
        }
        Ok(Box::new(file))
    }

    fn sync_file(&self, _: &str, file: &dyn OpenFile) -> io::Result<()> {
        file.sync()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        fs::hard_link(self.directory.join(from), self.directory.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.directory.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}
