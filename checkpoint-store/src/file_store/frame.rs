//! The frame around every file's content: whose it is, which format, how long, and a checksum.
//!
//! ```text
//! 0   8  magic
//! 8   2  format version, little endian like every number here
//! 10  1  kind of file
//! 11  1  zero
//! 12  8  length of the body
//! 20  n  body
//! ..  32 SHA-256 of everything before it
//! ```

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::Damage;

/// A byte that no text begins with, a name, and line ends that a text transfer would change.
const MAGIC: [u8; 8] = *b"\x89CKP\r\n\x1a\n";

/// The newest format version this build writes and reads.
pub(crate) const VERSION: u16 = 1;

const HEADER: usize = 20;
const DIGEST: usize = 32;

/// What a file is, so that one cannot pass for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Checkpoint,
    Owner,
    Mark,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Self::Checkpoint => 1,
            Self::Owner => 2,
            Self::Mark => 3,
        }
    }
}

/// Why bytes are no frame of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    Damaged(Damage),
    Foreign,
    Newer { version: u16 },
}

/// What goes before and after a body of two parts, so that a large one is not copied to be framed.
pub(crate) fn seal(kind: Kind, fields: &[u8], payload: &[u8]) -> (Vec<u8>, [u8; DIGEST]) {
    let mut head = Vec::with_capacity(HEADER + fields.len());
    head.extend_from_slice(&MAGIC);
    head.extend_from_slice(&VERSION.to_le_bytes());
    head.extend_from_slice(&[kind.code(), 0]);
    head.extend_from_slice(&length(fields.len() + payload.len()).to_le_bytes());
    head.extend_from_slice(fields);
    let digest = Sha256::new()
        .chain_update(&head)
        .chain_update(payload)
        .finalize();
    (head, digest.into())
}

/// Takes the body out of its frame.
pub(crate) fn open(kind: Kind, mut bytes: Bytes) -> Result<Bytes, Unreadable> {
    let magic = bytes.len().min(MAGIC.len());
    if bytes.get(..magic) != MAGIC.get(..magic) {
        return Err(Unreadable::Foreign);
    }
    let found = length(bytes.len());
    let truncated = |expected| Unreadable::Damaged(Damage::Truncated { expected, found });
    let shortest = length(HEADER + DIGEST);

    // The version first: nothing after it has a meaning that an older build could know.
    let version = field(&bytes, 8).map(u16::from_le_bytes);
    match version {
        Some(version) if version > VERSION => return Err(Unreadable::Newer { version }),
        Some(0) => return Err(Unreadable::Damaged(Damage::Contradiction)),
        Some(_) => {}
        None => return Err(truncated(shortest)),
    }
    let Some(body) = field(&bytes, 12).map(u64::from_le_bytes) else {
        return Err(truncated(shortest));
    };
    let Some(whole) = body.checked_add(shortest) else {
        return Err(Unreadable::Damaged(Damage::Checksum));
    };
    if found < whole {
        return Err(truncated(whole));
    }
    if found > whole {
        let surplus = found - whole;
        return Err(Unreadable::Damaged(Damage::Trailing { surplus }));
    }
    let digest = bytes.split_off(bytes.len() - DIGEST);
    if Sha256::digest(&bytes).as_slice() != digest.as_ref() {
        return Err(Unreadable::Damaged(Damage::Checksum));
    }
    if bytes.get(10..12) != Some([kind.code(), 0].as_slice()) {
        return Err(Unreadable::Foreign);
    }
    Ok(bytes.split_off(HEADER))
}

/// `N` bytes at `at`, where they exist.
pub(crate) fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn length(bytes: usize) -> u64 {
    // usize has at most 64 bits on every target that Rust supports.
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(kind: Kind, fields: &[u8], payload: &[u8]) -> Vec<u8> {
        let (head, digest) = seal(kind, fields, payload);
        [&head, payload, &digest].concat()
    }

    proptest! {
        #[test]
        fn a_frame_gives_back_what_it_was_given(
            fields in prop::collection::vec(any::<u8>(), 0..64),
            payload in prop::collection::vec(any::<u8>(), 0..512),
        ) {
            let bytes = framed(Kind::Checkpoint, &fields, &payload);
            let body = open(Kind::Checkpoint, bytes.into()).unwrap();
            prop_assert_eq!(body, [fields, payload].concat());
        }

        #[test]
        fn no_change_of_a_single_byte_goes_unnoticed(
            payload in prop::collection::vec(any::<u8>(), 0..256),
            at in any::<prop::sample::Index>(),
            flip in 1_u8..,
        ) {
            let mut bytes = framed(Kind::Mark, b"fields", &payload);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert!(open(Kind::Mark, bytes.into()).is_err());
        }

        #[test]
        fn a_file_that_lost_or_gained_bytes_is_noticed(
            payload in prop::collection::vec(any::<u8>(), 0..256),
            cut in any::<prop::sample::Index>(),
            more in prop::collection::vec(any::<u8>(), 1..64),
        ) {
            let bytes = framed(Kind::Owner, b"", &payload);
            let short = &bytes[..cut.index(bytes.len())];
            let expected = u64::try_from(bytes.len()).unwrap();
            let found = u64::try_from(short.len()).unwrap();
            match open(Kind::Owner, Bytes::copy_from_slice(short)) {
                Err(Unreadable::Damaged(Damage::Truncated { expected: told, found: seen })) => {
                    prop_assert_eq!(seen, found);
                    prop_assert!(told == expected || short.len() < HEADER);
                }
                other => prop_assert!(false, "{:?}", other),
            }
            let surplus = u64::try_from(more.len()).unwrap();
            prop_assert_eq!(
                open(Kind::Owner, [bytes, more].concat().into()),
                Err(Unreadable::Damaged(Damage::Trailing { surplus }))
            );
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..128)) {
            // Random bytes carry no right checksum, behind a right magic or not.
            prop_assert!(open(Kind::Owner, Bytes::copy_from_slice(&bytes)).is_err());
            prop_assert!(open(Kind::Owner, [MAGIC.to_vec(), bytes].concat().into()).is_err());
        }
    }

    #[test]
    fn a_file_of_one_kind_does_not_pass_for_another() {
        let bytes = framed(Kind::Owner, b"owner", b"");
        assert_eq!(open(Kind::Mark, bytes.into()), Err(Unreadable::Foreign));
    }

    #[test]
    fn a_newer_version_is_told_from_damage_whatever_follows_it() {
        let mut bytes = framed(Kind::Owner, b"owner", b"");
        bytes[8] = 2;
        bytes.truncate(10);
        assert_eq!(
            open(Kind::Owner, bytes.into()),
            Err(Unreadable::Newer { version: 2 })
        );
    }

    #[test]
    fn a_length_near_the_end_of_the_number_range_is_damage_and_no_overflow() {
        let mut bytes = framed(Kind::Owner, b"owner", b"");
        bytes[12..20].fill(0xff);
        assert_eq!(
            open(Kind::Owner, bytes.into()),
            Err(Unreadable::Damaged(Damage::Checksum))
        );
    }
}
