use std::time::Duration;

const MIB: usize = 1 << 20;

/// How connections are made and kept.
///
/// Built from [`default`](Default::default) by its setters and checked when a connection is made
/// from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionOptions {
    pub(super) channels: usize,
    pub(super) connect_timeout: Duration,
    pub(super) keepalive: Option<Duration>,
    pub(super) keepalive_timeout: Duration,
    pub(super) response_limit: usize,
    pub(super) request_limit: usize,
    pub(super) gzip: bool,
    pub(super) client: String,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            channels: 1,
            connect_timeout: Duration::from_secs(10),
            keepalive: Some(Duration::from_secs(60)),
            keepalive_timeout: Duration::from_secs(20),
            response_limit: 64 * MIB,
            request_limit: 20 * MIB,
            gzip: false,
            client: String::new(),
        }
    }
}

impl ConnectionOptions {
    /// HTTP/2 connections in the pool, 1 to 256; 1 by default.
    ///
    /// One carries 100 requests at a time and, for pulls, about 10 MB/s per stream. More raise the
    /// throughput at the price of connections; each is made when first needed.
    #[must_use]
    pub const fn channels(mut self, channels: usize) -> Self {
        self.channels = channels;
        self
    }

    /// The longest time for making a connection, its TLS session included; 10 s by default.
    ///
    /// A dead address is noticed after this, whatever the deadline of the call that waits.
    #[must_use]
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The time between HTTP/2 pings, also while idle, or `None` for no pings; 60 s by default.
    ///
    /// Without them a connection that a firewall dropped in silence is never noticed. A server that
    /// finds them too many (ENHANCE_YOUR_CALM) gets them half as often from then on, up to a factor
    /// of 64. Emulators never get pings: theirs answer quiet ones by closing the connection.
    #[must_use]
    pub const fn keepalive(mut self, interval: Option<Duration>) -> Self {
        self.keepalive = interval;
        self
    }

    /// How long a ping may go unanswered before the connection counts as dead; 20 s by default.
    #[must_use]
    pub const fn keepalive_timeout(mut self, timeout: Duration) -> Self {
        self.keepalive_timeout = timeout;
        self
    }

    /// The longest answer that is accepted, in bytes; 64 MiB by default, at least 20 MiB.
    ///
    /// A Pub/Sub message may have 10 MB, and a response may hold several.
    #[must_use]
    pub const fn response_limit(mut self, bytes: usize) -> Self {
        self.response_limit = bytes;
        self
    }

    /// The longest request that is sent, in bytes; 20 MiB by default, at least that.
    ///
    /// A longer one is refused here, before it is sent.
    #[must_use]
    pub const fn request_limit(mut self, bytes: usize) -> Self {
        self.request_limit = bytes;
        self
    }

    /// Whether requests of 240 bytes and more are compressed with gzip; off by default.
    ///
    /// Saves network where payloads compress well, and costs time on the CPU for each send.
    #[must_use]
    pub const fn gzip(mut self, on: bool) -> Self {
        self.gzip = on;
        self
    }

    /// Adds `name/version` to the `user-agent` and `x-goog-api-client` of every request.
    #[must_use]
    pub fn client(mut self, name: &str, version: &str) -> Self {
        if !self.client.is_empty() {
            self.client.push(' ');
        }
        self.client.push_str(name);
        self.client.push('/');
        self.client.push_str(version);
        self
    }

    pub(super) const fn check(&self) -> Result<(), WireError> {
        if self.channels == 0 || self.channels > 256 {
            return Err(WireError::Channels {
                channels: self.channels,
            });
        }
        if self.connect_timeout.is_zero() {
            return Err(WireError::Zero {
                setting: "connect_timeout",
            });
        }
        if self.keepalive_timeout.is_zero() {
            return Err(WireError::Zero {
                setting: "keepalive_timeout",
            });
        }
        if let Some(interval) = self.keepalive
            && interval.is_zero()
        {
            return Err(WireError::Zero {
                setting: "keepalive",
            });
        }
        if self.response_limit < 20 * MIB {
            let (setting, bytes) = ("response_limit", self.response_limit);
            return Err(WireError::Limit { setting, bytes });
        }
        if self.request_limit < 20 * MIB {
            let (setting, bytes) = ("request_limit", self.request_limit);
            return Err(WireError::Limit { setting, bytes });
        }
        Ok(())
    }
}

/// Why a connection was not made; nothing was connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The endpoint needs TLS and the crate was built without it.
    #[error("{endpoint} needs TLS; enable feature tls-ring or tls-aws-lc of gcp-wire")]
    NoTls {
        /// The endpoint as it prints itself.
        endpoint: String,
    },
    /// The number of channels is out of range.
    #[error("channels = {channels}; give 1 to 256")]
    Channels {
        /// The number given.
        channels: usize,
    },
    /// The streams do not fit on the channels.
    #[error("streams = {streams} with channels = {channels}; give 1 to {most}, or more channels")]
    Streams {
        /// The number of streams given.
        streams: usize,
        /// The number of channels given.
        channels: usize,
        /// The most streams for these channels.
        most: usize,
    },
    /// A time is zero.
    #[error("{setting} is zero; give a time, or leave the default")]
    Zero {
        /// The setting.
        setting: &'static str,
    },
    /// A limit is too small for what the services send and take.
    #[error("{setting} = {bytes} bytes; give at least 20971520 (20 MiB)")]
    Limit {
        /// The setting.
        setting: &'static str,
        /// The number of bytes given.
        bytes: usize,
    },
    /// The client's name cannot stand in a header.
    #[error("client {value:?} cannot stand in a header; use printable ASCII")]
    Client {
        /// The text as given.
        value: String,
    },
}

/// The flow-control window of a pull stream, in bytes: what the server may send before it is read.
///
/// It is leased and unseen while it waits there, so it is no larger than keeps a fast stream going.
pub const PULL_WINDOW: u32 = 2 << 20;

/// The largest frame of a pull stream, in bytes. A response that comes in one frame is read where it
/// lies, and a larger one has fewer to be put together from. A response is of no use before all of
/// it has come, so large frames delay nothing; but memory for larger ones than this goes back to the
/// kernel and comes from there each time.
const PULL_FRAME: u32 = 64 << 10;

/// The largest frame that HTTP/2 has without any agreement.
const LEAST_FRAME: u32 = 16 << 10;

/// The HTTP/2 windows of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    pub(super) stream: u32,
    pub(super) connection: u32,
    /// The largest frame that the server may send.
    pub(super) frame: u32,
}

impl Windows {
    /// Answers are small, but one that is not read must not hold up the other ninety-nine.
    pub(super) const fn unary(requests: usize) -> Self {
        Self::fitting(requests, 256 << 10, LEAST_FRAME)
    }

    /// A stream's window is what the server may send before we read: leased, and unseen.
    pub(super) const fn pull(streams: usize) -> Self {
        Self::fitting(streams, PULL_WINDOW, PULL_FRAME)
    }

    /// Unread streams use up the connection's window, which then also holds back the answers that
    /// somebody waits for; so it has room for all streams at their fullest, and 1 MiB.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most 100 streams of 2 MiB and 1 MiB, far below both u32 and HTTP/2's 2^31"
    )]
    const fn fitting(streams: usize, stream: u32, frame: u32) -> Self {
        Self {
            stream,
            connection: stream * streams as u32 + (1 << 20),
            frame,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let options = ConnectionOptions::default();
        assert_eq!(options.channels, 1);
        assert_eq!(options.connect_timeout, Duration::from_secs(10));
        assert_eq!(options.keepalive, Some(Duration::from_secs(60)));
        assert_eq!(options.keepalive_timeout, Duration::from_secs(20));
        assert_eq!(
            (options.response_limit, options.request_limit),
            (64 * MIB, 20 * MIB)
        );
        assert!(!options.gzip);
        assert_eq!(options.check(), Ok(()));
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let cases = [
            (ConnectionOptions::default().channels(0), "channels = 0"),
            (ConnectionOptions::default().channels(257), "channels = 257"),
            (
                ConnectionOptions::default().connect_timeout(Duration::ZERO),
                "connect_timeout",
            ),
            (
                ConnectionOptions::default().keepalive(Some(Duration::ZERO)),
                "keepalive",
            ),
            (
                ConnectionOptions::default().keepalive_timeout(Duration::ZERO),
                "keepalive_timeout",
            ),
            (
                ConnectionOptions::default().response_limit(4 * MIB),
                "response_limit = 4194304",
            ),
            (
                ConnectionOptions::default().request_limit(0),
                "request_limit = 0",
            ),
        ];
        for (options, name) in cases {
            let text = options.check().unwrap_err().to_string();
            assert!(text.contains(name), "{text}");
        }
    }

    #[test]
    fn a_connection_window_holds_all_streams_at_their_fullest_and_a_mebibyte() {
        for streams in 1..=100 {
            for windows in [Windows::unary(streams), Windows::pull(streams)] {
                assert!(windows.stream <= 2 << 20);
                let all = windows.stream as usize * streams + MIB;
                assert!(windows.connection as usize >= all, "{windows:?}");
                assert!(windows.connection < 1 << 31);
            }
        }
    }
}
