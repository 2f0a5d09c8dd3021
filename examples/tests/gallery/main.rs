//! The small examples, each run as its program runs it. Most kill their job in the middle.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[cfg(feature = "sqlite")]
mod effects;
mod engine;
mod flows;
mod service;
mod tasks;
mod windows;

use examples::figures::Figures;

/// The figures of these names, in their order.
fn of<const N: usize>(figures: &Figures, names: [&str; N]) -> [usize; N] {
    names.map(|name| figures.get(name).unwrap())
}
