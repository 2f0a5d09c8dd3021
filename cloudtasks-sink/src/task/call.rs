//! What tasks of every kind say about their call.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use connector_core::Cause;

use super::dispatch::Dispatch;
use super::error::excerpt;
use super::headers::Headers;
use super::{HttpMethod, TaskError};
use crate::body::{BodyFormat, ContentType};

const CONTENT_TYPE: &str = "Content-Type";

/// A method, headers, a body and its dispatch.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) method: HttpMethod,
    pub(super) headers: Headers,
    pub(super) body: Body,
    pub(super) dispatch: Dispatch,
}

impl Call {
    pub(super) fn new(method: HttpMethod) -> Self {
        Self {
            method,
            headers: Headers::default(),
            body: Body {
                bytes: Bytes::new(),
                content_type: ContentType::Unset,
            },
            dispatch: Dispatch::default(),
        }
    }

    pub(super) fn check_body(
        &self,
        takes_body: bool,
        allowed: &'static str,
    ) -> Result<(), TaskError> {
        if !takes_body && !self.body.bytes.is_empty() {
            return Err(TaskError::BodyNotAllowed {
                method: self.method,
                allowed,
            });
        }
        if let ContentType::Fixed(own) = self.body.content_type
            && let Some(given) = self.headers.get(CONTENT_TYPE)
            && !given.trim().eq_ignore_ascii_case(own)
        {
            return Err(TaskError::ContentType {
                given: excerpt(given),
                own,
            });
        }
        Ok(())
    }

    /// What a message holds: the method's number, the headers and the body; and the rest.
    pub(super) fn into_parts(self) -> (i32, BTreeMap<String, String>, Bytes, Dispatch) {
        let Self {
            method,
            mut headers,
            body,
            dispatch,
        } = self;
        let own = match body.content_type {
            ContentType::Unset => None,
            ContentType::Default(own) => Some(own).filter(|_| !headers.has(CONTENT_TYPE)),
            // In the one spelling, whatever the header's was.
            ContentType::Fixed(own) => Some(own),
        };
        if let Some(own) = own {
            headers.set(CONTENT_TYPE.to_owned(), own.to_owned());
        }
        (method.number(), headers.into_map(), body.bytes, dispatch)
    }
}

// Headers and bodies carry credentials and personal data.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("headers", &self.headers.names())
            .field("body_bytes", &self.body.bytes.len())
            .field("dispatch", &self.dispatch)
            .finish()
    }
}

/// A body and the Content-Type that it brings along.
#[derive(Clone)]
pub(super) struct Body {
    bytes: Bytes,
    content_type: ContentType,
}

impl Body {
    pub(super) fn set(&mut self, bytes: Bytes) {
        self.bytes = bytes;
        self.content_type = ContentType::Unset;
    }

    pub(super) fn set_as<T: ?Sized>(
        &mut self,
        format: &impl BodyFormat<T>,
        value: &T,
    ) -> Result<(), TaskError> {
        let bytes = format.encode(value).map_err(|error| TaskError::Body {
            source: Cause::from(error),
        })?;
        self.bytes = bytes;
        self.content_type = format.content_type();
        Ok(())
    }
}
