//! What becomes of leases when a source ends.

use std::time::Duration;

/// What a source that ends does with the deliveries that are not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDrop {
    /// Gives all of them back: another subscriber gets them at once. Each release counts as a
    /// delivery attempt where a dead-letter policy exists.
    Release,
    /// Gives none of them back: they come again when their leases end, at most `max_extension`
    /// later. That counts as an attempt too, but a host that crashes at every start burns one for
    /// each lease and not one for each start.
    Lapse,
    /// Gives all of them back, to be delivered again after this long: whole seconds, at most 600
    /// (the service's limit on a lease); a fraction counts as a whole second. For hosts whose
    /// restart with the same messages would fail at once.
    ReleaseAfter(Duration),
}
