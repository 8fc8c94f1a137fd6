//! The jail with a hostile worker in it, and with the real one, through the real launcher, adapter and runtime.
//!
//! The program is its own worker: started again with a hidden argument it seals itself as the product does, and then does
//! what the packet's last message tells it, as a worker whose reader was taken over would. So it has a `main` of its own,
//! which lists and runs tests as the standard one does. The product's binary holds none of this.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails here")]

mod denied;
mod harness;
mod heard;
mod home;
mod lies;
mod many;
mod model;
mod real;
mod rules;
#[path = "../../../protocol/tests/table/mod.rs"]
mod table;
mod worker;

use std::process::ExitCode;

use harness::Test;

const TESTS: &[Test] = &[
    ("every_lie_ends_in_its_own_reason_in_the_full_tier", lies::in_the_full_tier),
    ("every_lie_ends_in_its_own_reason_in_the_lesser_tier", lies::in_the_lesser_tier),
    ("a_silent_a_lingering_and_a_flooding_worker_end_in_time_and_are_told_apart", lies::silence),
    ("a_worker_that_dies_before_its_packet_is_told", lies::dead_before_the_packet),
    ("a_worker_that_never_reads_a_large_packet_is_told", lies::deaf_to_a_large_packet),
    ("a_thousand_launches_leave_nothing", many::a_thousand_launches_leave_nothing),
    ("the_real_worker_reads_the_whole_table_in_both_tiers", real::the_whole_table),
    ("the_real_worker_takes_large_packets_images_and_answers", real::large_frames),
    ("the_real_worker_says_why_it_refuses", real::refusals),
    ("the_real_worker_without_memory_says_so_or_dies", real::without_memory),
    ("every_rule_but_those_of_a_crash_is_used_by_the_real_worker", rules::every_rule_is_used),
    ("without_namespaces_init_writes_the_lesser_tier_and_why", denied::init_writes_the_lesser_tier),
    ("without_namespaces_doctor_names_the_layer_and_the_way", denied::doctor_names_the_layer),
    ("without_namespaces_serve_refuses_and_never_falls_back", denied::serve_never_falls_back),
];

fn main() -> ExitCode {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    if let Some(code) = worker::started_as_one(&arguments).or_else(|| denied::started_inside(&arguments)) {
        return code;
    }
    harness::run(TESTS)
}
