//! What the bytes in a store's directory must not break: a target for a fuzzer, and for tests over
//! its corpus.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ffi::OsString, io, path::Path};

use bytes::Bytes;
use connector_core::Epoch;

use super::{
    disk::{Disk, FileHandle, OpenFile},
    frame::{self, Kind},
    lineage::Lineage,
    listing::Listing,
    name::Name,
    record::{CheckpointHeader, MarkRecord, Newest, OwnerRecord},
};
use crate::StoreError;

/// The newest state that a directory says counts.
type Found = Option<(Newest, Bytes)>;

/// Whatever lies in a store's directory, reading it ends with an error, with nothing, or with a
/// state that some owner wrote whole under the name it was found by.
pub fn store_files(bytes: &[u8]) {
    files_by(bytes, newest);
}

fn files_by(bytes: &[u8], read: impl Fn(&Directory, &Listing) -> Result<Found, StoreError>) {
    let directory = Directory::from(bytes);
    for content in directory.0.values() {
        decode(content);
    }
    let Ok(listing) = Listing::of(&directory) else {
        return;
    };
    match read(&directory, &listing) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(None) => {}
        Ok(Some((newest, state))) => {
            let (generation, epoch) = (newest.generation, newest.epoch);
            assert!(listing.checkpoints.contains(&(generation, epoch)));
            let name = Name::Checkpoint { generation, epoch }.to_string();
            let content = &directory.0[&name];
            let (header, found) =
                CheckpointHeader::decode(content.clone()).expect("what counts is whole");
            assert_eq!(found, state);
            let (head, digest) = header.encode(&state);
            assert_eq!([&head[..], &state[..], &digest[..]].concat(), *content);
        }
    }
}

fn newest(directory: &Directory, listing: &Listing) -> Result<Found, StoreError> {
    let (_, found) = Lineage::follow(directory, listing)?.load(directory)?;
    Ok(found)
}

/// A record that can be read says the same when it is written again.
fn decode(content: &Bytes) {
    if let Ok(record) = OwnerRecord::decode(content.clone()) {
        let again = OwnerRecord::decode(record.encode().into());
        assert_eq!(again.ok(), Some(record));
    }
    if let Ok(record) = MarkRecord::decode(content.clone()) {
        assert_eq!(record.encode(), *content);
    }
}

/// A directory that is only read.
#[derive(Debug)]
struct Directory(BTreeMap<String, Bytes>);

impl From<&[u8]> for Directory {
    /// Each file is six bytes, of its kind, generation, epoch, frame and length, and its content.
    /// The content is the file's as it is, or is put into a frame with a right checksum.
    fn from(bytes: &[u8]) -> Self {
        let mut files = BTreeMap::new();
        let mut rest = bytes;
        while let [kind, generation, epoch, frame, length @ ..] = rest
            && let [low, high, content @ ..] = length
        {
            let length = usize::from(u16::from_le_bytes([*low, *high])).min(content.len());
            let (content, others) = content.split_at(length);
            rest = others;
            let generation = number(*generation);
            let epoch = Epoch::new(number(*epoch));
            let name = match kind % 6 {
                0 | 1 => Name::Checkpoint { generation, epoch }.to_string(),
                2 => Name::Owner { generation }.to_string(),
                3 => Name::Mark { generation }.to_string(),
                4 => format!("{}.0123.temp", Name::Owner { generation }),
                _ => String::from_utf8_lossy(content).into_owned(),
            };
            files.insert(name, framed(*frame, content));
        }
        Self(files)
    }
}

/// Small numbers, and the last one that there is.
fn number(byte: u8) -> u64 {
    if byte == u8::MAX {
        u64::MAX
    } else {
        byte.into()
    }
}

fn framed(frame: u8, content: &[u8]) -> Bytes {
    let kind = match frame % 4 {
        0 => return Bytes::copy_from_slice(content),
        1 => Kind::Checkpoint,
        2 => Kind::Owner,
        _ => Kind::Mark,
    };
    let (head, digest) = frame::seal(kind, &[], content);
    [&head, content, &digest].concat().into()
}

/// What a directory that is only read is not asked for.
const READ_ONLY: io::ErrorKind = io::ErrorKind::ReadOnlyFilesystem;

impl Disk for Directory {
    fn path(&self) -> &Path {
        Path::new("store")
    }

    fn list(&self) -> io::Result<Vec<OsString>> {
        Ok(self.0.keys().map(OsString::from).collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let content = self.0.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(content.to_vec())
    }

    fn open(&self, _: &str) -> io::Result<FileHandle> {
        Err(READ_ONLY.into())
    }

    fn create(&self, _: &str, _: &[&[u8]]) -> io::Result<FileHandle> {
        Err(READ_ONLY.into())
    }

    fn sync_file(&self, _: &str, _: &dyn OpenFile) -> io::Result<()> {
        Err(READ_ONLY.into())
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(READ_ONLY.into())
    }

    fn link(&self, _: &str, _: &str) -> io::Result<()> {
        Err(READ_ONLY.into())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(READ_ONLY.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(READ_ONLY.into())
    }
}
