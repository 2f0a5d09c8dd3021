//! A directory for tests: it counts its steps, writes them down, and does something at one of them.

use std::{
    ffi::OsString,
    fmt, io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::disk::{Disk, FileHandle, LocalDisk, OpenFile};

/// A step that changes the directory, or makes a change durable.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Create { name: String, content: Vec<u8> },
    SyncFile { name: String },
    Rename { from: String, to: String },
    Link { from: String, to: String },
    Remove { name: String },
    Sync,
}

type Hook = Box<dyn FnOnce() + Send>;

/// What happens at a step.
enum Happening {
    /// Something else runs before it.
    Interrupt(usize, Hook),
    /// It fails, once.
    Fail(usize),
    /// It fails, and all later ones.
    FailFrom(usize),
}

/// A real directory whose syncs are only written down, for nothing here outlives the test.
pub(super) struct ScriptedDisk {
    inner: LocalDisk,
    steps: AtomicUsize,
    journal: Mutex<Vec<Step>>,
    happening: Mutex<Option<Happening>>,
}

impl fmt::Debug for ScriptedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl ScriptedDisk {
    pub(super) fn new(directory: &Path) -> Arc<Self> {
        Arc::new(Self {
            inner: LocalDisk::open(directory.to_owned()).unwrap(),
            steps: AtomicUsize::new(0),
            journal: Mutex::default(),
            happening: Mutex::default(),
        })
    }

    /// The disk as a tenure takes it.
    pub(super) fn handle(self: &Arc<Self>) -> Box<dyn Disk> {
        Box::new(Handle(Arc::clone(self)))
    }

    /// Steps taken so far, reading ones included.
    pub(super) fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }

    pub(super) fn journal(&self) -> Vec<Step> {
        self.journal.lock().unwrap().clone()
    }

    /// Runs `hook` before the step that is `after` steps away.
    pub(super) fn interrupt(&self, after: usize, hook: impl FnOnce() + Send + 'static) {
        self.script(Happening::Interrupt(self.steps() + after, Box::new(hook)));
    }

    /// Fails the step that is `after` steps away.
    pub(super) fn fail(&self, after: usize) {
        self.script(Happening::Fail(self.steps() + after));
    }

    /// Fails the step that is `after` steps away and all that follow, until [`heal`](Self::heal).
    pub(super) fn fail_from(&self, after: usize) {
        self.script(Happening::FailFrom(self.steps() + after));
    }

    /// Ends what was scripted. Answers whether it was still to come.
    pub(super) fn heal(&self) -> bool {
        self.happening.lock().unwrap().take().is_some()
    }

    fn script(&self, happening: Happening) {
        *self.happening.lock().unwrap() = Some(happening);
    }

    fn step(&self) -> io::Result<()> {
        let step = self.steps.fetch_add(1, Ordering::SeqCst);
        let mut happening = self.happening.lock().unwrap();
        match happening.take() {
            Some(Happening::Interrupt(at, hook)) if at == step => {
                // The hook may look at this disk.
                drop(happening);
                hook();
            }
            Some(Happening::Fail(at)) if at == step => {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Some(Happening::FailFrom(at)) if at <= step => {
                *happening = Some(Happening::FailFrom(at));
                return Err(io::ErrorKind::StorageFull.into());
            }
            other => *happening = other,
        }
        Ok(())
    }

    fn note(&self, step: Step) {
        self.journal.lock().unwrap().push(step);
    }
}

#[derive(Debug)]
struct Handle(Arc<ScriptedDisk>);

impl Disk for Handle {
    fn path(&self) -> &Path {
        self.0.inner.path()
    }

    fn list(&self) -> io::Result<Vec<OsString>> {
        self.0.step()?;
        self.0.inner.list()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.step()?;
        self.0.inner.read(name)
    }

    fn open(&self, name: &str) -> io::Result<FileHandle> {
        self.0.step()?;
        self.0.inner.open(name)
    }

    fn create(&self, name: &str, parts: &[&[u8]]) -> io::Result<FileHandle> {
        self.0.step()?;
        let file = self.0.inner.create(name, parts)?;
        self.0.note(Step::Create {
            name: name.to_owned(),
            content: parts.concat(),
        });
        Ok(file)
    }

    fn sync_file(&self, name: &str, _: &dyn OpenFile) -> io::Result<()> {
        self.0.step()?;
        self.0.note(Step::SyncFile {
            name: name.to_owned(),
        });
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.step()?;
        self.0.inner.rename(from, to)?;
        self.0.note(Step::Rename {
            from: from.to_owned(),
            to: to.to_owned(),
        });
        Ok(())
    }

    fn link(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.step()?;
        self.0.inner.link(from, to)?;
        self.0.note(Step::Link {
            from: from.to_owned(),
            to: to.to_owned(),
        });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.step()?;
        self.0.inner.remove(name)?;
        self.0.note(Step::Remove {
            name: name.to_owned(),
        });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.step()?;
        self.0.note(Step::Sync);
        Ok(())
    }
}
