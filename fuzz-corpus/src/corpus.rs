//! The files that a target is tried on.

use std::{fs, io, path::Path};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus");

/// The largest file of a corpus. What needs more bytes to be interesting has not been made small.
pub(crate) const LARGEST: usize = 4096;

/// A target's files in the order of their names.
pub(crate) fn read(target: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(Path::new(CORPUS).join(target))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, fs::read(entry.path())?));
    }
    files.sort_unstable();
    Ok(files)
}
