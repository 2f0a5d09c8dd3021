use std::error::Error;

/// How the transport failed, read from the chain of sources.
///
/// The outermost error only says that something failed; which code a wrapper gives it depends on
/// the wrapper's version and features, so nothing here looks at one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportFault {
    /// The connection broke with the request on it.
    Broken,
    /// The server refused the stream before doing anything (`REFUSED_STREAM`).
    Refused,
    /// The server is going away and told us that it did not take this stream.
    GoneAway,
    /// The server reset the stream for another reason.
    Reset,
    /// The server closed the answer without giving a status.
    NoStatus,
    /// The connection was closed before it took the request.
    NotTaken,
}

impl TransportFault {
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        let Some(h2) = find::<h2::Error>(error) else {
            return Self::Broken;
        };
        if !h2.is_remote() {
            // Our own side ended it: the connection is unusable, whatever the server did.
            return Self::Broken;
        }
        match h2.reason() {
            Some(h2::Reason::REFUSED_STREAM) if h2.is_reset() => Self::Refused,
            // h2 reports a remote GOAWAY only on streams above the last id that it names.
            Some(_) | None if h2.is_go_away() => Self::GoneAway,
            Some(_) | None => Self::Reset,
        }
    }

    /// Whether the request provably had no effect: RFC 9113 promises it for both, and a request
    /// that no connection took stayed here.
    pub(crate) const fn never_sent(self) -> bool {
        match self {
            Self::Refused | Self::GoneAway | Self::NotTaken => true,
            Self::Broken | Self::Reset | Self::NoStatus => false,
        }
    }

    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Broken => "the connection broke",
            Self::Refused => "the server refused the stream",
            Self::GoneAway => "the server is going away",
            Self::Reset => "the server reset the stream",
            Self::NoStatus => "the answer ended without a status",
            Self::NotTaken => "the connection closed before it took the request",
        }
    }
}

/// Whether the server closed the connection because of too many pings.
pub(crate) fn is_enhance_your_calm(error: &(dyn Error + 'static)) -> bool {
    find::<h2::Error>(error)
        .is_some_and(|h2| h2.is_remote() && h2.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM))
}

fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
