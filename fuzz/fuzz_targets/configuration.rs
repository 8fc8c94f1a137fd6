#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    thought_fuzz::configuration::read(data);
});
