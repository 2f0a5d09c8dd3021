//! The attributes of a message.

use std::fmt;

use super::delivery::{ATTRIBUTES, text};
use super::fields::{Fields, Span, Value};

/// Field numbers of an entry of a map.
const KEY: u32 = 1;
const VALUE: u32 = 2;

/// The attributes of a pulled message, as they were sent.
///
/// Reading one looks at the entries before it: a message has at most a hundred, and mostly a few.
/// A key that was sent twice is there twice, and the last one counts.
#[derive(Clone, Copy, Default)]
pub struct Attributes<'a> {
    encoded: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes among the encoded fields of a `google.pubsub.v1.PubsubMessage`, of which the
    /// others are passed over.
    ///
    /// What [`encoded`](Self::encoded) gave before is read in full. Of anything else the entries up
    /// to the first fault are.
    #[must_use]
    pub const fn new(encoded: &'a [u8]) -> Self {
        Self { encoded }
    }

    /// What [`new`](Self::new) takes. Empty when there are no attributes.
    #[must_use]
    pub const fn encoded(&self) -> &'a [u8] {
        self.encoded
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.encoded.is_empty()
    }

    /// The entries, in the order in which they were sent.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut fields = Fields::of(self.encoded);
        std::iter::from_fn(move || {
            let fields = fields.as_mut()?;
            loop {
                let (number, value) = fields.next()??;
                if let (ATTRIBUTES, Value::Slice(span)) = (number, value) {
                    let (key, value) = entry(fields.within(span))?;
                    let text = |span: Span| std::str::from_utf8(span.of(fields.response())).ok();
                    return Some((text(key)?, text(value)?));
                }
            }
        })
    }

    /// One attribute.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        if self.is_empty() {
            return None;
        }
        let same = self.iter().filter(|(other, _)| *other == key);
        same.last().map(|(_, value)| value)
    }
}

/// The key and the value of an entry. `None` as of [`Fields`].
pub(super) fn entry(mut fields: Fields<'_>) -> Option<(Span, Span)> {
    let (mut key, mut value) = (Span::default(), Span::default());
    while let Some((number, field)) = fields.next()? {
        match (number, field) {
            (KEY, Value::Slice(span)) => key = text(&fields, span)?,
            (VALUE, Value::Slice(span)) => value = text(&fields, span)?,
            (KEY | VALUE, _) => return None,
            _ => {}
        }
    }
    Some((key, value))
}

// Attributes are the users' and do not belong into a log.
impl fmt::Debug for Attributes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attributes")
            .field("bytes", &self.encoded.len())
            .finish()
    }
}
