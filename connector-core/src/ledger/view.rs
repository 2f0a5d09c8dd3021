//! What a saved state names.

use super::SegmentView;

/// What a saved state names (C8): everything sealed, and everything committed without a verdict.
#[derive(Debug)]
pub struct View<T> {
    segments: Vec<SegmentView<T>>,
}

impl<T> View<T> {
    pub(super) fn new(segments: Vec<SegmentView<T>>) -> Self {
        Self { segments }
    }

    /// The items, in ledger order.
    pub fn iter(&self) -> impl Iterator<Item = &T> + '_ {
        self.segments
            .iter()
            .flat_map(SegmentView::iter)
            .map(|(_, item)| item)
    }

    /// The segments, in ledger order.
    #[must_use]
    pub fn segments(&self) -> &[SegmentView<T>] {
        &self.segments
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segments.iter().map(SegmentView::len).sum()
    }

    /// Whether nothing is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.iter().all(SegmentView::is_empty)
    }
}

impl<T> Clone for View<T> {
    fn clone(&self) -> Self {
        Self {
            segments: self.segments.clone(),
        }
    }
}

impl<T> Default for View<T> {
    fn default() -> Self {
        Self {
            segments: Vec::new(),
        }
    }
}
