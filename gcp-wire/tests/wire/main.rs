//! The crate against servers: in memory under a paused clock, byte by byte, and over TLS.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their test")]

#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
mod credentials;
mod environment;
mod frames;
mod metered;
mod pull;
mod server;
#[cfg(any(feature = "tls-ring", feature = "tls-aws-lc"))]
mod tls;
mod transport;
mod unary;
