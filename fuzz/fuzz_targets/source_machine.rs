#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pubsub_source::fuzzing::source_machine(bytes));
