//! What travels through the job: an order event, and the order with its route.

mod rfc3339;

use std::fmt;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::routes::Route;

/// An order event, as the shop publishes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Unique per event; a consumer that is idempotent by it may see the event any number of times.
    pub(crate) event_id: String,
    /// The shop's own number, which becomes one segment of the partner's URL.
    pub(crate) order_id: String,
    pub(crate) customer: String,
    pub(crate) region: Region,
    pub(crate) lines: Vec<Line>,
    /// When the partner is to be called, if not at once.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rfc3339")]
    pub(crate) dispatch_at: Option<SystemTime>,
}

/// One article of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) sku: String,
    pub(crate) quantity: u32,
    pub(crate) unit_cents: u32,
}

/// Where an order was placed; each region has its own topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Region {
    Americas,
    Asia,
    Europe,
    Oceania,
}

impl Region {
    pub(crate) const ALL: [Self; 4] = [Self::Americas, Self::Asia, Self::Europe, Self::Oceania];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Americas => "americas",
            Self::Asia => "asia",
            Self::Europe => "europe",
            Self::Oceania => "oceania",
        }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An order with what the routes table says about its customer: what the region topics carry, and
/// the body of the partner's call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EnrichedOrder {
    #[serde(flatten)]
    pub(crate) order: Order,
    /// `None` for a customer without a route: the order is published, and nobody is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) route: Option<Route>,
}

/// Why an order id cannot stand in a URL as one path segment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SegmentError {
    #[error("an order id is empty; there is no URL for it")]
    Empty,
    #[error(
        "order id {id:?} is longer than {} bytes; there is no URL for it",
        PathSegment::LIMIT
    )]
    Long { id: String },
    #[error("order id {id:?} would climb out of its path; there is no URL for it")]
    Dots { id: String },
    #[error(
        "order id {id:?} holds {found:?}; letters, digits and -._~ stand in a URL for themselves"
    )]
    Character { id: String, found: char },
}

/// An order id that means itself as one segment of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathSegment<'a>(&'a str);

impl<'a> PathSegment<'a> {
    /// Generous for an id, and far below what servers take as a path.
    const LIMIT: usize = 128;

    /// Checks an id. It is refused and not escaped: a server that decodes `%2F` before it routes
    /// would see two segments, and the call would land somewhere else.
    pub(crate) fn parse(id: &'a str) -> Result<Self, SegmentError> {
        if id.is_empty() {
            return Err(SegmentError::Empty);
        }
        if id.len() > Self::LIMIT {
            return Err(SegmentError::Long { id: id.to_owned() });
        }
        // The unreserved characters of RFC 3986, section 2.3.
        let stands = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~');
        if let Some(found) = id.chars().find(|c| !stands(*c)) {
            return Err(SegmentError::Character {
                id: id.to_owned(),
                found,
            });
        }
        if matches!(id, "." | "..") {
            return Err(SegmentError::Dots { id: id.to_owned() });
        }
        Ok(Self(id))
    }
}

impl fmt::Display for PathSegment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests;
