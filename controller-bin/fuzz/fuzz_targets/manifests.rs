//! See `controller_fuzz::manifests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    controller_fuzz::manifests(data);
});
