//! Message ids in little room.

use std::{
    fmt,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
};

/// So many neighbouring numbers hash to places beside each other.
const NEIGHBOURS: u64 = 64;

/// Decimal numbers of so many digits all fit 64 bits.
const MOST_DIGITS: usize = 19;

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
    /// The key of an id, which is UTF-8.
    // Inline, and its parts in registers until they are where the key is to be: put together in
    // memory first, it would be loaded in one piece right after it was stored in two, which a
    // processor does not do before everything that was stored until then has left its store buffer.
    #[inline(always)]
    pub(crate) fn of(id: &[u8]) -> Self {
        match number(id) {
            Some(number) => Self::Number(number),
            None => Self::Text(text(id)),
        }
    }

    /// A stand-in where a key was moved out.
    pub(super) const fn vacant() -> Self {
        Self::Number(0)
    }

    /// A hash that is the same in every run, so that a machine's behaviour is a function of its
    /// inputs. Ids are given by the service, not by whoever publishes, so nobody can aim at it.
    pub(super) fn hash(&self) -> u64 {
        match self {
            Self::Number(number) => {
                // Ids of one publish request differ in the low bits only. What shares the others is
                // kept together, so that the next message's place is in memory that is at hand.
                let low = number % NEIGHBOURS;
                // The finalizer of MurmurHash3.
                let mut hash = number / NEIGHBOURS;
                hash ^= hash >> 33;
                hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
                hash ^= hash >> 33;
                hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
                hash ^= hash >> 33;
                // A table looks at the upper bits first to tell neighbours apart.
                hash ^ low ^ low << 57
            }
            Self::Text(text) => BuildHasherDefault::<DefaultHasher>::default().hash_one(text),
        }
    }
}

#[cold]
fn text(id: &[u8]) -> Box<str> {
    String::from_utf8_lossy(id).into()
}

/// The number whose canonical decimal form this is, if it is one.
#[inline]
fn number(id: &[u8]) -> Option<u64> {
    if let [] | [b'0', _, ..] = id {
        return None;
    }
    // Of the numbers of 64 bits the longest have one digit more: those are told apart by the rest.
    let (id, last) = match id.split_at_checked(MOST_DIGITS) {
        Some((head, [last])) => (head, Some(digit(*last)?)),
        Some((head, [])) => (head, None),
        Some(_) => return None,
        None => (id, None),
    };
    let (eights, rest) = id.as_chunks();
    let mut number = 0;
    for eight in eights {
        number = number * 100_000_000 + eight_digits(*eight)?;
    }
    for one in rest {
        number = number * 10 + digit(*one)?;
    }
    match last {
        Some(last) => number.checked_mul(10)?.checked_add(last),
        None => Some(number),
    }
}

#[inline]
fn digit(byte: u8) -> Option<u64> {
    let digit = byte.wrapping_sub(b'0');
    (digit <= 9).then_some(u64::from(digit))
}

/// The number of eight decimal digits, all of which are looked at together: ids are read once per
/// message, and digit by digit that is a fifth of what reading a message costs.
#[inline]
fn eight_digits(digits: [u8; 8]) -> Option<u64> {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    let digits = u64::from_le_bytes(digits);
    // A digit is 0x30 to 0x39, so its upper half is a three, and still is with six added.
    let above_nine = (digits.wrapping_add(0x0606_0606_0606_0606) & HIGH) >> 4;
    if (digits & HIGH) | above_nine != 0x3333_3333_3333_3333 {
        return None;
    }
    // Neighbours are joined to pairs, pairs to fours, and those to the whole.
    let ones = digits & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = ones.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(10_000 << 32 | 1) >> 32)
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
            ("1234567", Some(1_234_567)),
            ("12345678", Some(12_345_678)),
            ("1234567890123456", Some(1_234_567_890_123_456)),
            ("9999999999999999999", Some(9_999_999_999_999_999_999)),
            ("123456789012345/", None),
            ("12345:7890123456", None),
            ("1234567\u{80}", None),
        ] {
            let key = MessageKey::of(id.as_bytes());
            assert_eq!(key.to_string(), id);
            let read = match key {
                MessageKey::Number(number) => Some(number),
                MessageKey::Text(_) => None,
            };
            assert_eq!(read, number, "{id:?}");
        }
    }

    #[test]
    fn a_key_takes_sixteen_bytes() {
        assert_eq!(size_of::<MessageKey>(), 16);
    }

    proptest! {
        #[test]
        fn every_number_is_read_as_one(number: u64, digits in 1u32..20) {
            let number = number % 10u64.pow(digits);
            prop_assert_eq!(MessageKey::of(number.to_string().as_bytes()), MessageKey::Number(number));
        }

        #[test]
        fn every_id_survives(id in ".{0,24}|[0-9]{1,22}|[0-9]{0,19}.[0-9]{0,19}") {
            prop_assert_eq!(MessageKey::of(id.as_bytes()).to_string(), id);
        }
    }
}
