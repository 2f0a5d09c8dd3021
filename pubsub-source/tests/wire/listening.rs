//! Listening to what a test's own thread writes into its log.

use std::sync::Once;

use tracing::{
    Event, Metadata, Subscriber,
    span::{Attributes, Id, Record},
    subscriber::{DefaultGuard, Interest, set_default, set_global_default},
};

/// Takes nothing, and turns nothing down for good.
struct Open;

impl Subscriber for Open {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Has `subscriber` hear this thread while the guard lives.
///
/// While it is the only one, a place in the code that another test's thread comes by first, where nobody
/// listens, would count as of no interest to anyone. So somebody listens everywhere.
pub(crate) fn listen(subscriber: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    static EVERYWHERE: Once = Once::new();
    EVERYWHERE.call_once(|| set_global_default(Open).unwrap());
    set_default(subscriber)
}
