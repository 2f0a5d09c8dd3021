//! An input that breaks its target.

use std::{
    collections::hash_map::DefaultHasher,
    fmt, fs,
    hash::{Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

const FINDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/fuzz-findings");

/// An input that breaks its target, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finding {
    /// The input.
    pub input: Vec<u8>,
    /// What happened.
    pub why: Why,
}

/// How an input breaks its target.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The target panicked, with this text where it was one.
    Panicked(String),
    /// The target held more bytes at a time than it has room for.
    Overfilled {
        /// What it held.
        held: u64,
        /// What it may hold.
        room: u64,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(text) => write!(f, "it panicked: {text}"),
            Self::Overfilled { held, room } => {
                write!(f, "it held {held} bytes and has room for {room}")
            }
        }
    }
}

impl Finding {
    /// Leaves the input where it can be tried again, and answers where.
    pub(crate) fn save(&self, target: &str) -> io::Result<PathBuf> {
        let mut hasher = DefaultHasher::new();
        self.input.hash(&mut hasher);
        fs::create_dir_all(FINDINGS)?;
        let path = Path::new(FINDINGS).join(format!("{target}-{:016x}", hasher.finish()));
        fs::write(&path, &self.input)?;
        Ok(path)
    }
}
