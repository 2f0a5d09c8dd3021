#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gcp_wire::fuzzing::published_ids(bytes));
