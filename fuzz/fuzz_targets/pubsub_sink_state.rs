#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pubsub_sink::fuzzing::sink_state(bytes));
