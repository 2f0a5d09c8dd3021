//! All clauses of a kind in one go, for hosts without a test attribute.

use super::{Clause, SinkHarness, SourceHarness, Violation, flush_sink, source, staged_sink};

macro_rules! clauses {
    ($kind:ident, $make:ident: $($clause:ident $function:ident),+) => {{
        let mut violations = Vec::new();
        $({
            let mut harness = $make().await;
            if let Err(violation) = $kind::$function(&mut harness).await {
                debug_assert_eq!(violation.clause, Clause::$clause, "a function cites its clause");
                violations.push(violation);
            }
        })+
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }};
}

/// Holds a source to every clause, with a fresh harness for each.
///
/// # Errors
///
/// Every clause that is broken, in order.
pub async fn run_source<H: SourceHarness>(
    mut make: impl AsyncFnMut() -> H,
) -> Result<(), Vec<Violation>> {
    clauses!(source, make:
        C1 c1, C2 c2, C3 c3, C4 c4, C5 c5, C6 c6, C7 c7, C8 c8, C9 c9, C10 c10, C11 c11, C12 c12,
        C13 c13)
}

/// Holds a sink that delivers before its snapshot's receipt to every clause that says something
/// about it, with a fresh harness for each.
///
/// # Errors
///
/// Every clause that is broken, in order.
pub async fn run_flush_sink<H: SinkHarness>(
    mut make: impl AsyncFnMut() -> H,
) -> Result<(), Vec<Violation>> {
    clauses!(flush_sink, make:
        C1 c1, C2 c2, C3 c3, C4 c4, C6 c6, C7 c7, C8 c8, C9 c9, C10 c10, C12 c12)
}

/// Holds a sink that keeps its output in the state until the commit to every clause, with a fresh
/// harness for each.
///
/// # Errors
///
/// Every clause that is broken, in order.
pub async fn run_staged_sink<H: SinkHarness>(
    mut make: impl AsyncFnMut() -> H,
) -> Result<(), Vec<Violation>> {
    clauses!(staged_sink, make:
        C1 c1, C2 c2, C3 c3, C4 c4, C5 c5, C6 c6, C7 c7, C8 c8, C9 c9, C10 c10, C11 c11, C12 c12,
        C13 c13)
}
