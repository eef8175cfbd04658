//! See `controller_fuzz::request_records`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    controller_fuzz::request_records(data);
});
