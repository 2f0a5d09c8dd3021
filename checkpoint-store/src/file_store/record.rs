//! What the files say, inside their frames.

use bytes::Bytes;
use connector_core::Epoch;
use uuid::Uuid;

use super::frame::{self, Kind, Unreadable, field};
use crate::{Damage, Progress};

/// A saved state: which store, which owner, which epoch. The state's bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckpointHeader {
    pub(crate) store: Uuid,
    pub(crate) generation: u64,
    pub(crate) epoch: Epoch,
}

/// The newest state as a lineage sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) generation: u64,
    pub(crate) epoch: Epoch,
    pub(crate) progress: Progress,
}

/// Where the lineage of an owner begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// The owner has claimed the store and not looked at it yet.
    Undecided,
    /// The owner found this and reads nothing that a predecessor writes later.
    Decided(Option<Newest>),
}

/// Who owns, or owned, the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnerRecord {
    pub(crate) store: Uuid,
    pub(crate) generation: u64,
    /// Random: tells this owner from one of the same number in a directory that was copied back.
    pub(crate) token: Uuid,
    pub(crate) pid: u32,
    pub(crate) base: Base,
}

/// How far an epoch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MarkRecord {
    pub(crate) store: Uuid,
    pub(crate) generation: u64,
    pub(crate) epoch: Epoch,
    pub(crate) progress: Progress,
}

const CONTRADICTION: Unreadable = Unreadable::Damaged(Damage::Contradiction);

impl CheckpointHeader {
    const LENGTH: usize = 32;

    pub(crate) fn encode(&self, state: &[u8]) -> (Vec<u8>, [u8; 32]) {
        let mut fields = Vec::with_capacity(Self::LENGTH);
        fields.extend_from_slice(self.store.as_bytes());
        fields.extend_from_slice(&self.generation.to_le_bytes());
        fields.extend_from_slice(&self.epoch.get().to_le_bytes());
        frame::seal(Kind::Checkpoint, &fields, state)
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<(Self, Bytes), Unreadable> {
        let mut body = frame::open(Kind::Checkpoint, bytes)?;
        let header = (|| {
            Some(Self {
                store: Uuid::from_bytes(field(&body, 0)?),
                generation: u64::from_le_bytes(field(&body, 16)?),
                epoch: Epoch::new(u64::from_le_bytes(field(&body, 24)?)),
            })
        })()
        .ok_or(CONTRADICTION)?;
        Ok((header, body.split_off(Self::LENGTH)))
    }
}

impl OwnerRecord {
    const LENGTH: usize = 62;

    pub(crate) fn encode(&self) -> Vec<u8> {
        let (tag, newest) = match self.base {
            Base::Undecided => (0, None),
            Base::Decided(None) => (1, None),
            Base::Decided(Some(newest)) => (2, Some(newest)),
        };
        let mut fields = Vec::with_capacity(Self::LENGTH);
        fields.extend_from_slice(self.store.as_bytes());
        fields.extend_from_slice(&self.generation.to_le_bytes());
        fields.extend_from_slice(self.token.as_bytes());
        fields.extend_from_slice(&self.pid.to_le_bytes());
        fields.push(tag);
        fields.extend_from_slice(&newest.map_or(0, |base| base.generation).to_le_bytes());
        fields.extend_from_slice(&newest.map_or(0, |base| base.epoch.get()).to_le_bytes());
        fields.push(newest.map_or(0, |base| progress_code(base.progress)));
        whole(frame::seal(Kind::Owner, &fields, &[]))
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Self, Unreadable> {
        let body = frame::open(Kind::Owner, bytes)?;
        if body.len() != Self::LENGTH {
            return Err(CONTRADICTION);
        }
        (|| {
            let base = match field(&body, 44)? {
                [0] => Base::Undecided,
                [1] => Base::Decided(None),
                [2] => Base::Decided(Some(Newest {
                    generation: u64::from_le_bytes(field(&body, 45)?),
                    epoch: Epoch::new(u64::from_le_bytes(field(&body, 53)?)),
                    progress: progress(field(&body, 61)?)?,
                })),
                [_] => return None,
            };
            Some(Self {
                store: Uuid::from_bytes(field(&body, 0)?),
                generation: u64::from_le_bytes(field(&body, 16)?),
                token: Uuid::from_bytes(field(&body, 24)?),
                pid: u32::from_le_bytes(field(&body, 40)?),
                base,
            })
        })()
        .ok_or(CONTRADICTION)
    }
}

impl MarkRecord {
    const LENGTH: usize = 33;

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::with_capacity(Self::LENGTH);
        fields.extend_from_slice(self.store.as_bytes());
        fields.extend_from_slice(&self.generation.to_le_bytes());
        fields.extend_from_slice(&self.epoch.get().to_le_bytes());
        fields.push(progress_code(self.progress));
        whole(frame::seal(Kind::Mark, &fields, &[]))
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Self, Unreadable> {
        let body = frame::open(Kind::Mark, bytes)?;
        if body.len() != Self::LENGTH {
            return Err(CONTRADICTION);
        }
        (|| {
            Some(Self {
                store: Uuid::from_bytes(field(&body, 0)?),
                generation: u64::from_le_bytes(field(&body, 16)?),
                epoch: Epoch::new(u64::from_le_bytes(field(&body, 24)?)),
                progress: progress(field(&body, 32)?)?,
            })
        })()
        .ok_or(CONTRADICTION)
    }
}

fn whole((mut head, digest): (Vec<u8>, [u8; 32])) -> Vec<u8> {
    head.extend_from_slice(&digest);
    head
}

const fn progress_code(progress: Progress) -> u8 {
    match progress {
        Progress::Saved => 0,
        Progress::Committing => 1,
        Progress::Settled => 2,
    }
}

const fn progress([code]: [u8; 1]) -> Option<Progress> {
    match code {
        0 => Some(Progress::Saved),
        1 => Some(Progress::Committing),
        2 => Some(Progress::Settled),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn progresses() -> impl Strategy<Value = Progress> {
        prop_oneof![
            Just(Progress::Saved),
            Just(Progress::Committing),
            Just(Progress::Settled)
        ]
    }

    prop_compose! {
        fn newests()(generation: u64, epoch: u64, progress in progresses()) -> Newest {
            Newest { generation, epoch: Epoch::new(epoch), progress }
        }
    }

    fn bases() -> impl Strategy<Value = Base> {
        prop_oneof![
            Just(Base::Undecided),
            prop::option::of(newests()).prop_map(Base::Decided)
        ]
    }

    proptest! {
        #[test]
        fn a_checkpoint_is_read_back_as_it_was_written(
            store: u128, generation: u64, epoch: u64,
            state in prop::collection::vec(any::<u8>(), 0..256),
        ) {
            let store = Uuid::from_u128(store);
            let header = CheckpointHeader { store, generation, epoch: Epoch::new(epoch) };
            let (head, digest) = header.encode(&state);
            let bytes = [head, state.clone(), digest.to_vec()].concat();
            prop_assert_eq!(
                CheckpointHeader::decode(bytes.into()),
                Ok((header, Bytes::from(state)))
            );
        }

        #[test]
        fn an_owner_is_read_back_as_it_was_written(
            store: u128, generation: u64, token: u128, pid: u32, base in bases(),
        ) {
            let (store, token) = (Uuid::from_u128(store), Uuid::from_u128(token));
            let record = OwnerRecord { store, generation, token, pid, base };
            prop_assert_eq!(OwnerRecord::decode(record.encode().into()), Ok(record));
        }

        #[test]
        fn a_mark_is_read_back_as_it_was_written(
            store: u128, generation: u64, epoch: u64, progress in progresses(),
        ) {
            let (store, epoch) = (Uuid::from_u128(store), Epoch::new(epoch));
            let record = MarkRecord { store, generation, epoch, progress };
            prop_assert_eq!(MarkRecord::decode(record.encode().into()), Ok(record));
        }
    }

    #[test]
    fn a_sealed_body_of_the_wrong_shape_is_a_contradiction() {
        let short = whole(frame::seal(Kind::Owner, b"short", &[]));
        assert_eq!(OwnerRecord::decode(short.into()), Err(CONTRADICTION));
        let mut fields = [0_u8; MarkRecord::LENGTH];
        fields[32] = 9;
        let unknown = whole(frame::seal(Kind::Mark, &fields, &[]));
        assert_eq!(MarkRecord::decode(unknown.into()), Err(CONTRADICTION));
        let (head, digest) = frame::seal(Kind::Checkpoint, b"", b"");
        let headless = [head, digest.to_vec()].concat();
        assert_eq!(
            CheckpointHeader::decode(headless.into()),
            Err(CONTRADICTION)
        );
    }
}
