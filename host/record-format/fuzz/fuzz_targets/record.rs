//! See `oarlock_record_format::testing::fuzz::record`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oarlock_record_format::testing::fuzz::record(data));
