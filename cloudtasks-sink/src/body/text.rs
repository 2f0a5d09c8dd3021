//! Text bodies.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use connector_core::BoxError;

use super::{BodyError, BodyFormat, ContentType};

/// Text in a charset, with Content-Type `text/plain; charset=…` unless a header gives another.
///
/// ```
/// use cloudtasks_sink::{Charset, HttpTask, Text};
///
/// let task = HttpTask::post("https://partner.example/")?
///     .body_as(&Text::new(Charset::Utf16Be), "東京")?;
/// # let _: HttpTask = task;
/// # Ok::<(), cloudtasks_sink::TaskError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Text {
    charset: Charset,
}

/// How characters become bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Charset {
    /// UTF-8.
    #[default]
    Utf8,
    /// UTF-16, the higher byte first, without a byte order mark.
    Utf16Be,
    /// UTF-16, the lower byte first, without a byte order mark.
    Utf16Le,
    /// ISO-8859-1, which has U+0000 to U+00FF only.
    Latin1,
    /// US-ASCII, which has U+0000 to U+007F only.
    Ascii,
}

impl Text {
    /// Text in `charset`. Default: UTF-8.
    #[must_use]
    pub const fn new(charset: Charset) -> Self {
        Self { charset }
    }
}

impl fmt::Display for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf8 => "utf-8",
            Self::Utf16Be => "utf-16be",
            Self::Utf16Le => "utf-16le",
            Self::Latin1 => "iso-8859-1",
            Self::Ascii => "us-ascii",
        })
    }
}

impl Charset {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Utf8 => "text/plain; charset=utf-8",
            Self::Utf16Be => "text/plain; charset=utf-16be",
            Self::Utf16Le => "text/plain; charset=utf-16le",
            Self::Latin1 => "text/plain; charset=iso-8859-1",
            Self::Ascii => "text/plain; charset=us-ascii",
        }
    }

    fn encode(self, text: &str) -> Result<Bytes, BodyError> {
        let single = |highest: u8| {
            text.chars()
                .map(|symbol| {
                    u8::try_from(u32::from(symbol))
                        .ok()
                        .filter(|byte| *byte <= highest)
                        .ok_or(BodyError::Unencodable {
                            symbol,
                            charset: self,
                        })
                })
                .collect::<Result<Vec<u8>, BodyError>>()
        };
        let double = |put: fn(&mut BytesMut, u16)| {
            let mut bytes = BytesMut::with_capacity(2 * text.len());
            text.encode_utf16().for_each(|unit| put(&mut bytes, unit));
            bytes.freeze()
        };
        match self {
            Self::Utf8 => Ok(Bytes::copy_from_slice(text.as_bytes())),
            Self::Utf16Be => Ok(double(|bytes, unit| bytes.put_u16(unit))),
            Self::Utf16Le => Ok(double(|bytes, unit| bytes.put_u16_le(unit))),
            Self::Latin1 => Ok(single(u8::MAX)?.into()),
            Self::Ascii => Ok(single(0x7f)?.into()),
        }
    }
}

impl<T: AsRef<str> + ?Sized> BodyFormat<T> for Text {
    fn content_type(&self) -> ContentType {
        ContentType::Default(self.charset.content_type())
    }

    fn encode(&self, value: &T) -> Result<Bytes, BoxError> {
        Ok(self.charset.encode(value.as_ref())?)
    }
}
