#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checkpoint_store::fuzzing::store_files(bytes));
