//! How much of what is held a state names.

/// What a source saves of the deliveries that its checkpoints cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SavedDeliveries {
    /// The ids of their messages, 2 to 9 bytes each where they are numbers. After a restore they
    /// are recognised when they come again, once their leases have ended, and acknowledged then.
    #[default]
    MessageIds,
    /// Their message ids and their ack ids, about 180 bytes each. A restore acknowledges them at
    /// once, so that nothing comes again if it is done before the leases end; what was too late
    /// is recognised as with [`MessageIds`](Self::MessageIds). So is what the service answered OK
    /// for: of a source that gave its messages back at its end an OK proves nothing. A state names
    /// no ack id whose lease was over or given back at its cut.
    ///
    /// Worth its size where somebody else reads the subscription too: another subscriber does not
    /// recognise what comes again, only an acknowledgement in time keeps it away. The source holds
    /// a second copy of each ack id in this mode. Not for an emulator that may be started again
    /// while the reader is down: it gives the same ack ids to other messages.
    AckIds,
    /// Nothing, and nothing that a restored state names is recognised. Whatever was committed and
    /// not confirmed when the process died comes again and is handed out again; nothing is lost.
    /// A message of which some records were handed out is not named either: after a restore it
    /// begins again with its first record.
    ///
    /// For hosts that take messages twice without harm, and for a restart before an operator's
    /// replay.
    Nothing,
}
