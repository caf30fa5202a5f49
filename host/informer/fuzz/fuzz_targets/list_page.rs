//! See `oarlock_informer::testing::fuzz::list_page`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oarlock_informer::testing::fuzz::list_page(data));
