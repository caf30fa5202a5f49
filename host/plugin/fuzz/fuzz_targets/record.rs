//! See `oarlock_plugin::testing::fuzz::record`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oarlock_plugin::testing::fuzz::record(data));
