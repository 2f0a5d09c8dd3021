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

/// Whether bytes are text. What services send mostly is ASCII, which takes a fraction of the time
/// to find out.
#[inline]
pub(super) fn is_text(bytes: &[u8]) -> bool {
    bytes.is_ascii() || std::str::from_utf8(bytes).is_ok()
}
