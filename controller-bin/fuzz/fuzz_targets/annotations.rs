//! See `controller_fuzz::annotations`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    controller_fuzz::annotations(data);
});
