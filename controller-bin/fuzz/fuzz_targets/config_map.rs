//! See `controller_fuzz::config_map`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    controller_fuzz::config_map(data);
});
