//! The fields of an encoded message, without copying any.

/// A part of a response, by its place in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(super) const fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    pub(super) const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// From where the one begins to where the other ends, of which an empty one counts as nothing.
    pub(super) const fn to(self, last: Self) -> Self {
        if self.is_empty() {
            return last;
        }
        Self {
            start: self.start,
            end: last.end,
        }
    }

    /// The bytes of it. A span is made of the response that it is used with.
    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        bytes
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Varint(u64),
    Slice(Span),
    /// Four or eight bytes, which no field known here has.
    Fixed,
}

/// What can be told of a field's length by its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// In bytes, with its key.
    Known(usize),
    /// More of its beginning is needed.
    Unknown,
    /// No field of the kind that services send in pieces.
    Unusual,
}

/// Walks over the fields of one message of a response.
///
/// `None` from any of its methods means that something is not as services send it: the bytes are
/// malformed, or of a kind that is left to the generated types.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    response: &'a [u8],
    /// What is not read yet of this message, which ends at `end` of the response.
    rest: &'a [u8],
    end: u32,
}

impl<'a> Fields<'a> {
    /// The fields of a whole response, unless it is longer than spans can say.
    pub(super) fn of(response: &'a [u8]) -> Option<Self> {
        let end = u32::try_from(response.len()).ok()?;
        Some(Self {
            response,
            rest: response,
            end,
        })
    }

    /// The fields of a message inside this response.
    #[inline]
    pub(super) fn within(&self, span: Span) -> Self {
        Self {
            response: self.response,
            rest: span.of(self.response),
            end: span.end,
        }
    }

    /// The fields in the last so many bytes of these.
    pub(super) fn last(mut self, len: usize) -> Option<Self> {
        self.rest = self.rest.get(self.rest.len().checked_sub(len)?..)?;
        Some(self)
    }

    /// What is not read yet.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// How long the next field is, of which only the beginning may be here.
    pub(super) fn extent(&self) -> Extent {
        // The longest number has ten bytes, and no shorter one is unusual for not having ended yet.
        let unread = |fields: &Self| match fields.rest.len() {
            0..10 => Extent::Unknown,
            _ => Extent::Unusual,
        };
        let mut fields = self.clone();
        let Some(key) = fields.varint() else {
            return unread(&fields);
        };
        if key & 7 != 2 {
            return Extent::Unusual;
        }
        let Some(len) = fields.varint() else {
            return unread(&fields);
        };
        let head = self.rest.len() - fields.rest.len();
        let len = usize::try_from(len).ok();
        match len.and_then(|len| len.checked_add(head)) {
            Some(len) => Extent::Known(len),
            None => Extent::Unusual,
        }
    }

    pub(super) const fn response(&self) -> &'a [u8] {
        self.response
    }

    /// How far this has come in the response.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is left of a message is no longer than its response, whose length fits"
    )]
    pub(super) const fn at(&self) -> u32 {
        self.end - self.rest.len() as u32
    }

    /// From there to here.
    #[inline]
    pub(super) const fn since(&self, start: u32) -> Span {
        Span {
            start,
            end: self.at(),
        }
    }

    /// The next field, and `Some(None)` at the end.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Option<(u32, Value)>> {
        if self.rest.is_empty() {
            return Some(None);
        }
        let key = u32::try_from(self.varint()?).ok()?;
        let number = key >> 3;
        if number == 0 {
            return None;
        }
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.skip(8)?,
            2 => Value::Slice(self.slice()?),
            5 => self.skip(4)?,
            _ => return None,
        };
        Some(Some((number, value)))
    }

    #[inline(always)]
    fn slice(&mut self) -> Option<Span> {
        let len = usize::try_from(self.varint()?).ok()?;
        let start = self.at();
        self.advance(len)?;
        Some(self.since(start))
    }

    #[inline]
    fn skip(&mut self, len: usize) -> Option<Value> {
        self.advance(len)?;
        Some(Value::Fixed)
    }

    #[inline(always)]
    fn advance(&mut self, len: usize) -> Option<()> {
        self.rest = self.rest.get(len..)?;
        Some(())
    }

    /// A number in at most ten bytes of seven bits each, 64 bits in all.
    #[inline(always)]
    fn varint(&mut self) -> Option<u64> {
        // Keys and most lengths have one byte or two.
        match *self.rest {
            [first, ref rest @ ..] if first < 0x80 => {
                self.rest = rest;
                Some(u64::from(first))
            }
            [first, second, ref rest @ ..] if second < 0x80 => {
                self.rest = rest;
                Some(u64::from(first & 0x7f) | u64::from(second) << 7)
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Option<u64> {
        // Times have numbers of five bytes, and two of them for each message: all their bytes are
        // looked at together.
        if let Some(eight) = self.rest.first_chunk() {
            let (value, len) = up_to_eight(u64::from_le_bytes(*eight));
            if len > 0 {
                self.advance(len)?;
                return Some(value);
            }
        }
        let mut value = 0;
        for (index, byte) in (0_u32..10).zip(self.rest) {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                // The tenth byte has room for one bit.
                if index == 9 && *byte > 1 {
                    return None;
                }
                self.advance(index as usize + 1)?;
                return Some(value);
            }
        }
        None
    }
}

/// The number that these bytes begin with, the first of them lowest, and how many it has; none when
/// it does not end within them.
#[inline]
const fn up_to_eight(bytes: u64) -> (u64, usize) {
    let ends = !bytes & 0x8080_8080_8080_8080;
    if ends == 0 {
        return (0, 0);
    }
    let len = ends.trailing_zeros() as usize / 8 + 1;
    // Without what follows it, and without the bits that say that it goes on.
    let sevens = bytes & (ends ^ (ends - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
    // Neighbours are joined to pairs, pairs to fours, and those to the whole.
    let pairs = sevens & 0x007f_007f_007f_007f | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let whole = fours & 0x0000_0000_0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4;
    (whole, len)
}

/// Whether bytes are text. What services send mostly is ASCII, which takes a fraction of the time
/// to find out.
#[inline]
pub(super) fn is_text(bytes: &[u8]) -> bool {
    is_ascii(bytes) || std::str::from_utf8(bytes).is_ok()
}

/// Eight bytes at a time, the last eight too: ids have 16 bytes and ack ids some more than any
/// number of larger steps, and one by one the rest of them is what takes the time.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let Some(last) = bytes.last_chunk() else {
        return bytes.iter().all(u8::is_ascii);
    };
    let (eights, _) = bytes.as_chunks();
    let all = eights.iter().fold(u64::from_le_bytes(*last), |all, eight| {
        all | u64::from_le_bytes(*eight)
    });
    all & HIGH == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::encoding::{decode_varint, encode_varint};

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_the_generated_types_read_them(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x80_u8..], 0..12),
        ) {
            let mut rest = &bytes[..];
            let theirs = decode_varint(&mut rest).ok();
            let mut fields = Fields::of(&bytes).unwrap();
            prop_assert_eq!(fields.varint(), theirs);
            if theirs.is_some() {
                prop_assert_eq!(fields.rest, rest);
            }
        }

        #[test]
        fn every_number_is_read(bits in 0_u32..64, number: u64, after in any::<Vec<u8>>()) {
            let number = number >> bits;
            let mut bytes = Vec::new();
            encode_varint(number, &mut bytes);
            bytes.extend_from_slice(&after);
            let mut fields = Fields::of(&bytes).unwrap();
            prop_assert_eq!(fields.varint(), Some(number));
            prop_assert_eq!(fields.rest, &after[..]);
        }

        #[test]
        fn bytes_are_text_when_they_are_utf8(
            bytes in prop::collection::vec(prop_oneof![9 => 0_u8..0x80, 1 => any::<u8>()], 0..40),
            text in "\\PC{0,20}",
        ) {
            prop_assert_eq!(is_text(&bytes), std::str::from_utf8(&bytes).is_ok());
            prop_assert_eq!(is_ascii(&bytes), bytes.is_ascii());
            prop_assert!(is_text(text.as_bytes()));
        }
    }
}
