//! A worker's result as the parent reads it: only the exact canonical bytes of what they say.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thought_protocol::result::WorkerResult;

fuzz_target!(|data: &[u8]| {
    let Ok(result) = WorkerResult::decode(data) else { return };
    assert_eq!(result.encode().expect("a result encodes"), data);
});
