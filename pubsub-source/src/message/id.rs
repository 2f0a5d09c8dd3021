//! A message's id in the message itself.

use std::fmt;

/// The service's ids are decimal numbers of 16 or 17 digits, and any number of 64 bits fits.
const SHORT: usize = 22;

/// A message's id, which needs no memory of its own as long as it is short.
///
/// Kept as the bytes that the response was checked to have as text: most hosts never look at it.
#[derive(Clone)]
pub(crate) enum Id {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

impl Id {
    /// No id yet.
    pub(crate) const fn blank() -> Self {
        Self::Short {
            len: 0,
            bytes: [0; SHORT],
        }
    }

    /// Becomes the id of these bytes, which are UTF-8: in its place, since what was just written
    /// in pieces is slow to move.
    pub(crate) fn set(&mut self, id: &[u8]) {
        let Self::Short { len, bytes } = self else {
            *self = Self::Long(id.into());
            return;
        };
        match (bytes.get_mut(..id.len()), u8::try_from(id.len())) {
            (Some(place), Ok(count)) => {
                *len = count;
                // The service's ids, which have 16 digits, without a call.
                match (place.as_mut_array::<16>(), id.as_array::<16>()) {
                    (Some(place), Some(id)) => *place = *id,
                    _ => place.copy_from_slice(id),
                }
            }
            _ => *self = Self::Long(id.into()),
        }
    }

    /// An id of these bytes, which are UTF-8.
    #[cfg(test)]
    pub(crate) fn of(id: &[u8]) -> Self {
        let mut new = Self::blank();
        new.set(id);
        new
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        // Text, or it would not have been read.
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_takes_no_more_room_than_a_string() {
        assert!(size_of::<Id>() <= size_of::<String>());
    }

    proptest! {
        #[test]
        fn every_id_reads_back(id in ".{0,30}|[0-9]{0,24}") {
            let kept = Id::of(id.as_bytes());
            prop_assert_eq!(kept.as_str(), id.as_str());
            prop_assert_eq!(format!("{kept:?}"), format!("{id:?}"));
            prop_assert_eq!(matches!(kept, Id::Short { .. }), id.len() <= SHORT);
        }
    }
}
