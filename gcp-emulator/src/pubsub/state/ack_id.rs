//! Ack ids: opaque to clients, and checkable here without a table of those given out.

/// The characters of an ack id, as the service's look: base64 for addresses.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Characters that carry 6 bits each of subscription and lease: 6 + 11.
const SUBSCRIPTION: usize = 6;
const LEASE: usize = 11;

/// What an ack id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AckId {
    pub(super) subscription: u32,
    pub(super) lease: u64,
}

impl AckId {
    /// The text of the id, `length` characters long. The characters behind the two numbers follow
    /// from them, which is what makes a made-up id recognisable.
    pub(super) fn mint(self, length: usize) -> String {
        let mut text = String::with_capacity(length);
        push(&mut text, u64::from(self.subscription), SUBSCRIPTION);
        // Mixed by an odd factor (invertible modulo 2^64), so that neighbours look unlike.
        push(&mut text, self.lease.wrapping_mul(MIX), LEASE);
        let mut noise = self.lease ^ u64::from(self.subscription).wrapping_mul(MIX) ^ SEED;
        while text.len() < length {
            // xorshift64: a filler needs no more than to look filled.
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            let step = (length - text.len()).min(10);
            push(&mut text, noise, step);
        }
        text
    }

    /// What the text names, if it is one this machine could have given out.
    pub(super) fn parse(text: &str, length: usize) -> Option<Self> {
        if text.len() != length {
            return None;
        }
        let bytes = text.as_bytes();
        let subscription = u32::try_from(read(bytes.get(..SUBSCRIPTION)?)?).ok()?;
        let mixed = read(bytes.get(SUBSCRIPTION..SUBSCRIPTION + LEASE)?)?;
        let id = Self {
            subscription,
            lease: mixed.wrapping_mul(UNMIX),
        };
        (id.mint(length) == text).then_some(id)
    }
}

/// Where the filler starts for the first lease: not at zero, which xorshift never leaves.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// An odd factor without a pattern.
const MIX: u64 = 0x5851_f42d_4c95_7f2d;

/// The inverse of [`MIX`] modulo 2^64, by Newton's iteration.
const UNMIX: u64 = {
    let mut inverse = 1_u64;
    let mut round = 0;
    while round < 6 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(MIX.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
};

fn push(text: &mut String, mut number: u64, characters: usize) {
    for _ in 0..characters {
        let place = usize::try_from(number & 63).unwrap_or(0);
        text.push(char::from(ALPHABET.get(place).copied().unwrap_or(b'A')));
        number >>= 6;
    }
}

fn read(characters: &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for character in characters.iter().rev() {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        number = (number << 6) | u64::from(value);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_id_is_read_back_and_has_the_length_asked_for() {
        for lease in [0, 1, 63, 64, 1_000_000, u64::MAX] {
            for length in [40, 176, 500] {
                let id = AckId {
                    subscription: 7,
                    lease,
                };
                let text = id.mint(length);
                assert_eq!(text.len(), length);
                assert_eq!(AckId::parse(&text, length), Some(id));
            }
        }
    }

    #[test]
    fn a_changed_ack_id_is_not_one() {
        let text = AckId {
            subscription: 1,
            lease: 42,
        }
        .mint(176);
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] = if bytes[place] == b'x' { b'y' } else { b'x' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(AckId::parse(&changed, 176), None, "{place}");
        }
        assert_eq!(AckId::parse(text.trim_start_matches('B'), 176), None);
        assert_eq!(AckId::parse("", 176), None);
    }
}
