#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    thought_fuzz::declarations::read(data);
});
