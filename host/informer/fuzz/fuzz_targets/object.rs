//! See `oarlock_informer::testing::fuzz::object`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oarlock_informer::testing::fuzz::object(data));
