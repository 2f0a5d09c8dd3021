//! The target over its corpus, and shown to find a mistake.

use fuzz_corpus::Target;

use super::*;
use crate::Progress;

#[test]
fn no_bytes_in_a_directory_break_the_store() {
    Target::new("store_files", store_files).check();
}

/// Trusts the newest name, and does not look at the checksum.
fn trusting(directory: &Directory, listing: &Listing) -> Result<Found, StoreError> {
    let Some(&(generation, epoch)) = listing.checkpoints.last() else {
        return Ok(None);
    };
    let content = &directory.0[&Name::Checkpoint { generation, epoch }.to_string()];
    let Some(state) = content.get(52..content.len().saturating_sub(32)) else {
        return newest(directory, listing);
    };
    let progress = Progress::Saved;
    let newest = Newest {
        generation,
        epoch,
        progress,
    };
    Ok(Some((newest, Bytes::copy_from_slice(state))))
}

#[test]
fn a_state_whose_checksum_is_not_looked_at_is_found() {
    let found = Target::new("store_files", |bytes| files_by(bytes, trusting)).find();
    assert!(found.is_some());
}
