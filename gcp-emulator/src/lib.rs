//! gcp-emulator
