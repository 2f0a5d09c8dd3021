//! A stable hash of a key onto a few shards.

use sha2::{Digest, Sha256};

/// The shard of `key` among `n`, the same in every version of this crate.
///
/// The first eight bytes of SHA-256, read as a big-endian number, modulo `n`. Use it to spread
/// customers over queues, or keys over readers. Changing `n` moves most keys.
///
/// # Panics
///
/// When `n` is zero.
#[must_use]
pub fn shard(key: impl AsRef<[u8]>, n: usize) -> usize {
    assert!(n > 0, "there is no shard among zero");
    let digest = Sha256::digest(key.as_ref());
    let mut head = [0; 8];
    head.copy_from_slice(&digest[..8]);
    let n = n as u64;
    usize::try_from(u64::from_be_bytes(head) % n).unwrap_or(0)
}
