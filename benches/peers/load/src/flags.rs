//! The flags.

use std::time::Duration;

use clap::{Args, Subcommand};
use measure::{Failure, Flags};

/// What a peer is to do.
#[derive(Debug, Subcommand)]
pub enum Mode {
    /// Reads a subscription and acknowledges.
    Receive(Receive),
    /// Publishes to a topic.
    Publish(Publish),
    /// Creates tasks.
    Create(Create),
}

impl Mode {
    /// What all modes take.
    pub fn flags(&self) -> &Flags {
        match self {
            Self::Receive(receive) => &receive.flags,
            Self::Publish(publish) => &publish.flags,
            Self::Create(create) => &create.flags,
        }
    }

    /// The error of a peer that has no such thing.
    pub fn unknown(&self) -> Failure {
        "this peer has no such mode".into()
    }
}

/// Reading.
#[derive(Debug, Args, Clone)]
pub struct Receive {
    #[command(flatten)]
    pub flags: Flags,
    /// The subscription.
    #[arg(long, default_value = "projects/demo-project/subscriptions/flood")]
    pub subscription: String,
    /// Seconds for which acknowledgements are held; 0 to send them as soon as a request is full.
    #[arg(long, default_value_t = 0.0)]
    pub checkpoint_secs: f64,
    /// The same under another name.
    #[arg(long)]
    pub hold_secs: Option<f64>,
    /// What flow control allows, in messages.
    #[arg(long, default_value_t = 100_000)]
    pub outstanding: u32,
}

impl Receive {
    /// How long acknowledgements are held; `None` where they are not.
    pub fn every(&self) -> Option<Duration> {
        let seconds = self.hold_secs.unwrap_or(self.checkpoint_secs);
        (seconds > 0.0).then(|| Duration::from_secs_f64(seconds))
    }
}

/// Publishing.
#[derive(Debug, Args, Clone)]
pub struct Publish {
    #[command(flatten)]
    pub flags: Flags,
    /// The topic.
    #[arg(long, default_value = "projects/demo-project/topics/flood")]
    pub topic: String,
    /// Bytes of a payload.
    #[arg(long, default_value_t = 1024)]
    pub payload_bytes: usize,
    /// Messages per request.
    #[arg(long, default_value_t = 1000)]
    pub batch: usize,
    /// Requests under way.
    #[arg(long, default_value_t = 10)]
    pub in_flight: usize,
}

/// Creating tasks.
#[derive(Debug, Args, Clone)]
pub struct Create {
    #[command(flatten)]
    pub flags: Flags,
    /// The queue.
    #[arg(long, default_value = "projects/p/locations/l/queues/q")]
    pub queue: String,
    /// Bytes of a task's body.
    #[arg(long, default_value_t = 1024)]
    pub payload_bytes: usize,
    /// Requests under way.
    #[arg(long, default_value_t = 1000)]
    pub in_flight: usize,
}

/// The named server. A peer starts none of its own.
pub(crate) fn endpoint(flags: &Flags) -> Result<&str, Failure> {
    let named = flags.endpoint.as_deref();
    named.ok_or_else(|| "--endpoint HOST:PORT: start `throughput flood` and name it".into())
}

macro_rules! has_an_endpoint {
    ($($mode:ident),*) => {$(
        impl $mode {
            /// The server, as HOST:PORT.
            pub fn endpoint(&self) -> Result<&str, Failure> {
                endpoint(&self.flags)
            }
        }
    )*};
}
has_an_endpoint!(Receive, Publish, Create);
