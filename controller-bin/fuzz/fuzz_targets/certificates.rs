//! See `controller_fuzz::certificates`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    controller_fuzz::certificates(data);
});
