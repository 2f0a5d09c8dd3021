use connector_core::StateError;
use gcp_wire::WireError;

/// Why a sink was not built. Nothing was connected, sent or restored.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Neither a topic nor a resolver was given.
    #[error("no destination is set; call topic(name) or resolve(resolver) on the builder")]
    NoDestination,
    /// A setting lies outside its range.
    #[error("{setting} is {found}, it must be {allowed}")]
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What is allowed, and why.
        allowed: &'static str,
    },
    /// Two settings contradict each other.
    #[error("{first} and {second} cannot both be set: {reason}")]
    Conflict {
        /// The one setting.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why they exclude each other.
        reason: &'static str,
    },
    /// A setting has no meaning without another.
    #[error("{setting} needs {needs}: {reason}")]
    Incomplete {
        /// The setting that is set.
        setting: &'static str,
        /// The one that is not.
        needs: &'static str,
        /// Why it needs it.
        reason: &'static str,
    },
    /// There is no Tokio runtime to run the sink's driver.
    #[error(
        "there is no Tokio runtime here to run the sink's driver; call build() inside one, or build_with_driver() and place the driver yourself"
    )]
    NoRuntime,
    /// A state given to `restore` cannot be used.
    #[error("a state given to restore() is not this sink's")]
    State(#[source] StateError),
    /// A flushing sink was given a state that names messages.
    #[error(
        "the state given to restore() names {messages} messages to be published and {quarantined} in quarantine, which a flushing sink could not save again; use delivery(Delivery::Staged) until a state names none"
    )]
    StagedState {
        /// Messages to be published.
        messages: usize,
        /// Messages in quarantine.
        quarantined: usize,
    },
    /// The connection's settings cannot be used.
    #[error("the connection's settings cannot be used")]
    Wire(#[source] WireError),
}
