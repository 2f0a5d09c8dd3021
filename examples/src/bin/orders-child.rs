//! What the tests of `orders` run as its child processes: a test's own executable does not know
//! the roles, and Cargo tells tests where a package's binaries are, but not where its examples are.

use std::process::ExitCode;

fn main() -> ExitCode {
    examples::orders::main()
}
