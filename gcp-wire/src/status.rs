//! What became of an RPC that failed, in terms that do not depend on any transport crate.

mod cause;
mod code;
mod details;
mod error;
mod transport;

pub use self::cause::DecodeFault;
pub use self::code::{Code, Fault};
pub use self::details::AckFailure;
pub use self::error::{RpcError, Sent};

pub(crate) use self::cause::{Cause, Phase, Refusal};
pub(crate) use self::details::Details;
pub(crate) use self::error::bounded;
pub(crate) use self::transport::{TransportFault, is_enhance_your_calm};

#[cfg(test)]
mod tests;
