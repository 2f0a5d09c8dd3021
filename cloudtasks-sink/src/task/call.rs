//! What tasks of every kind say about their call.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use connector_core::Cause;
use serde::Serialize;

use super::dispatch::Dispatch;
use super::headers::Headers;
use super::{HttpMethod, TaskError};

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
            body: Body::default(),
            dispatch: Dispatch::default(),
        }
    }

    pub(super) fn check_body(
        &self,
        takes_body: bool,
        allowed: &'static str,
    ) -> Result<(), TaskError> {
        if takes_body || self.body.bytes.is_empty() {
            Ok(())
        } else {
            Err(TaskError::BodyNotAllowed {
                method: self.method,
                allowed,
            })
        }
    }

    /// What a message holds: the method's number, the headers and the body; and the rest.
    pub(super) fn into_parts(self) -> (i32, BTreeMap<String, String>, Bytes, Dispatch) {
        let Self {
            method,
            mut headers,
            body,
            dispatch,
        } = self;
        if let Some(body_type) = body.default_type
            && !headers.has("content-type")
        {
            headers.set("Content-Type".to_owned(), body_type.to_owned());
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
#[derive(Clone, Default)]
pub(super) struct Body {
    bytes: Bytes,
    /// Any header replaces it.
    default_type: Option<&'static str>,
}

impl Body {
    pub(super) fn set(&mut self, bytes: Bytes) {
        self.bytes = bytes;
        self.default_type = None;
    }

    pub(super) fn set_json<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TaskError> {
        let bytes = serde_json::to_vec(value).map_err(|error| TaskError::Json {
            source: Cause::new(error),
        })?;
        self.bytes = bytes.into();
        self.default_type = Some("application/json");
        Ok(())
    }
}
