//! The names of the files in a store's directory.

use std::{ffi::OsStr, fmt};

use connector_core::Epoch;

/// The name of a file that counts.
///
/// Numbers have twenty digits, so that a listing sorted by name is sorted by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// A state, by the generation of the owner that saved it and its epoch.
    Checkpoint { generation: u64, epoch: Epoch },
    /// The record of the owner of a generation.
    Owner { generation: u64 },
    /// How far the newest epoch has come, by the owner of a generation.
    Mark { generation: u64 },
}

const CHECKPOINT: &str = "checkpoint-";
const OWNER: &str = "owner-";
const MARK: &str = "mark-";
const TEMPORARY: &str = ".temp";

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkpoint { generation, epoch } => {
                write!(f, "{CHECKPOINT}{generation:020}-{:020}", epoch.get())
            }
            Self::Owner { generation } => write!(f, "{OWNER}{generation:020}"),
            Self::Mark { generation } => write!(f, "{MARK}{generation:020}"),
        }
    }
}

impl Name {
    /// The name under which the file is written before it counts.
    ///
    /// The token keeps two processes that write a file of the same name apart.
    pub(crate) fn temporary(self, token: &uuid::Uuid) -> String {
        format!("{self}.{}{TEMPORARY}", token.simple())
    }
}

/// What an entry of the directory is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A file that counts.
    Named(Name),
    /// A file that was being written; without its writer it is a left-over.
    Temporary(String),
    /// A name that begins like ours and is none.
    Foreign,
    /// Something else, which the store leaves alone.
    Unrelated,
}

impl Entry {
    pub(crate) fn of(name: &OsStr) -> Self {
        let Some(name) = name.to_str() else {
            return Self::Unrelated;
        };
        if ![CHECKPOINT, OWNER, MARK]
            .iter()
            .any(|ours| name.starts_with(ours))
        {
            return Self::Unrelated;
        }
        if name.ends_with(TEMPORARY) {
            return Self::Temporary(name.to_owned());
        }
        parse(name).map_or(Self::Foreign, Self::Named)
    }
}

fn parse(name: &str) -> Option<Name> {
    if let Some(rest) = name.strip_prefix(CHECKPOINT) {
        let (generation, epoch) = rest.split_once('-')?;
        return Some(Name::Checkpoint {
            generation: number(generation)?,
            epoch: Epoch::new(number(epoch)?),
        });
    }
    if let Some(generation) = name.strip_prefix(OWNER) {
        let generation = number(generation)?;
        return Some(Name::Owner { generation });
    }
    let generation = number(name.strip_prefix(MARK)?)?;
    Some(Name::Mark { generation })
}

/// Exactly twenty digits: `+7` and `7` would be second names of one file.
fn number(digits: &str) -> Option<u64> {
    (digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit()))
        .then(|| digits.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use proptest::prelude::*;

    use super::*;

    fn names() -> impl Strategy<Value = Name> {
        prop_oneof![
            (any::<u64>(), any::<u64>()).prop_map(|(generation, epoch)| Name::Checkpoint {
                generation,
                epoch: Epoch::new(epoch)
            }),
            any::<u64>().prop_map(|generation| Name::Owner { generation }),
            any::<u64>().prop_map(|generation| Name::Mark { generation }),
        ]
    }

    proptest! {
        #[test]
        fn a_name_is_read_back_as_what_it_was(name in names()) {
            let entry = Entry::of(&OsString::from(name.to_string()));
            prop_assert_eq!(entry, Entry::Named(name));
            let temporary = name.temporary(&uuid::Uuid::nil());
            let entry = Entry::of(OsStr::new(&temporary));
            prop_assert_eq!(entry, Entry::Temporary(temporary));
        }

        #[test]
        fn names_sort_by_age(a in any::<(u64, u64)>(), b in any::<(u64, u64)>()) {
            let name = |(generation, epoch)| Name::Checkpoint { generation, epoch: Epoch::new(epoch) };
            prop_assert_eq!(a.cmp(&b), name(a).to_string().cmp(&name(b).to_string()));
        }
    }

    #[test]
    fn a_name_that_only_begins_like_ours_is_foreign() {
        for name in [
            "checkpoint-7",
            "checkpoint-00000000000000000001-00000000000000000007.bak",
            "checkpoint-00000000000000000001-+0000000000000000007",
            "owner-",
            "mark-99999999999999999999",
        ] {
            assert_eq!(Entry::of(OsStr::new(name)), Entry::Foreign, "{name}");
        }
        for name in ["lost+found", "notes.txt", ".checkpoint-1"] {
            assert_eq!(Entry::of(OsStr::new(name)), Entry::Unrelated, "{name}");
        }
    }
}
