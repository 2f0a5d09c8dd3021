//! connector-core
