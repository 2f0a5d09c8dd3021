//! The clauses as a source is held to them.

mod commit;
mod cut;
mod end;
mod restore;

pub use commit::{c4, c5, c6, c11};
pub use cut::{c1, c2, c3, c7};
pub use end::{c10, c12, c13};
pub use restore::{c8, c9};
