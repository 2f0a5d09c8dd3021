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
    at: usize,
    end: usize,
}

impl<'a> Fields<'a> {
    /// The fields of a whole response, unless it is longer than spans can say.
    pub(super) fn of(response: &'a [u8]) -> Option<Self> {
        u32::try_from(response.len()).ok()?;
        Some(Self {
            response,
            at: 0,
            end: response.len(),
        })
    }

    /// The fields of a message inside this response.
    pub(super) const fn within(&self, span: Span) -> Self {
        Self {
            response: self.response,
            at: span.start as usize,
            end: span.end as usize,
        }
    }

    pub(super) fn response(&self) -> &'a [u8] {
        self.response
    }

    /// The next field, and `Some(None)` at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Option<(u32, Value)>> {
        if self.at == self.end {
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

    /// The next field together with its key, as it stands there.
    pub(super) fn next_whole(&mut self) -> Option<Option<(u32, Value, Span)>> {
        let start = self.at;
        let Some((number, value)) = self.next()? else {
            return Some(None);
        };
        Some(Some((number, value, self.span(start)?)))
    }

    #[inline]
    fn slice(&mut self) -> Option<Span> {
        let len = usize::try_from(self.varint()?).ok()?;
        let start = self.at;
        self.advance(len)?;
        self.span(start)
    }

    fn span(&self, start: usize) -> Option<Span> {
        Some(Span {
            start: u32::try_from(start).ok()?,
            end: u32::try_from(self.at).ok()?,
        })
    }

    fn skip(&mut self, len: usize) -> Option<Value> {
        self.advance(len)?;
        Some(Value::Fixed)
    }

    #[inline]
    fn advance(&mut self, len: usize) -> Option<()> {
        if len > self.end - self.at {
            return None;
        }
        self.at += len;
        Some(())
    }

    /// A number in at most ten bytes of seven bits each, 64 bits in all.
    #[inline]
    fn varint(&mut self) -> Option<u64> {
        let rest = self.response.get(self.at..self.end)?;
        let first = *rest.first()?;
        if first < 0x80 {
            self.at += 1;
            return Some(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for (index, byte) in (1_u32..).zip(rest.iter().take(10).skip(1)) {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                // The tenth byte has room for one bit.
                if index == 9 && *byte > 1 {
                    return None;
                }
                self.at += index as usize + 1;
                return Some(value);
            }
        }
        None
    }
}
