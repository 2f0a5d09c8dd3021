//! Message ids in little room.

use std::{
    fmt,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
};

/// A message id, as the machine and the saved state keep it.
///
/// The service's ids are decimal numbers of 16 or 17 digits: 8 bytes instead of a string each. Any
/// other id (the service promises only a string) is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MessageKey {
    /// A canonical decimal number: printing it gives the id back.
    Number(u64),
    /// Anything else.
    Text(Box<str>),
}

impl MessageKey {
    /// The key of an id.
    pub(crate) fn of(id: &str) -> Self {
        let bytes = id.as_bytes();
        let canonical = match bytes {
            [] => false,
            [b'0'] => true,
            [first, rest @ ..] => {
                matches!(first, b'1'..=b'9') && rest.iter().all(u8::is_ascii_digit)
            }
        };
        // 20 digits may still overflow, which `parse` notices.
        if canonical && let Ok(number) = id.parse() {
            return Self::Number(number);
        }
        Self::Text(id.into())
    }

    /// A stand-in where a key was moved out.
    pub(super) const fn vacant() -> Self {
        Self::Number(0)
    }

    /// A hash that is the same in every run, so that a machine's behaviour is a function of its
    /// inputs. Ids are given by the service, not by whoever publishes, so nobody can aim at it.
    pub(super) fn hash(&self) -> u64 {
        match self {
            // The finalizer of MurmurHash3: ids of one publish request differ in the low bits only.
            Self::Number(number) => {
                let mut hash = *number;
                hash ^= hash >> 33;
                hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
                hash ^= hash >> 33;
                hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
                hash ^ hash >> 33
            }
            Self::Text(text) => BuildHasherDefault::<DefaultHasher>::default().hash_one(text),
        }
    }
}

impl fmt::Display for MessageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_ids_that_print_back_the_same_become_numbers() {
        for (id, number) in [
            ("0", Some(0)),
            ("1", Some(1)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("007", None),
            ("", None),
            ("+1", None),
            ("1a", None),
        ] {
            let key = MessageKey::of(id);
            assert_eq!(key.to_string(), id);
            assert_eq!(
                matches!(key, MessageKey::Number(_)),
                number.is_some(),
                "{id:?}"
            );
        }
    }

    #[test]
    fn a_key_takes_sixteen_bytes() {
        assert_eq!(size_of::<MessageKey>(), 16);
    }

    proptest! {
        #[test]
        fn every_id_survives(id in ".{0,24}|[0-9]{1,22}") {
            prop_assert_eq!(MessageKey::of(&id).to_string(), id);
        }
    }
}
