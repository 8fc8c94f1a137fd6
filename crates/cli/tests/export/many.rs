//! Memory does not grow with the number of judgments: counted on the real binary, by what the kernel says was its most.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use thought_testkit::home::Home;
use thought_testkit::run::argument;

use crate::THOUGHT;
use crate::fill::Filler;
use crate::scene::{ACKNOWLEDGE, PRIVATE};

/// What an export may take, whatever it exports.
const PEAK_KIB_MAX: u64 = 64 * 1_024;
/// What a longer export may take beyond a shorter one: pages of the same tables that stayed in the store's caches.
const GROWTH_KIB_MAX: u64 = 8 * 1_024;

/// Exports, and answers the most memory that the process had, with what it wrote to stderr.
fn export(home: &Home, name: &str) -> (u64, String) {
    let output = home.path.parent().unwrap().join(name);
    let arguments = ["--home", argument(&home.path), PRIVATE, "--output", argument(&output), ACKNOWLEDGE];
    let log = home.folder.path().join(format!("{name}.log"));
    let stderr = Stdio::from(fs::File::create(&log).unwrap());
    let mut running = home.binary.spawn(&arguments, Stdio::null(), stderr);
    let status_file = format!("/proc/{}/status", running.0.id());
    let mut peak_kib = 0;
    let ended = loop {
        // The most so far only grows, so the last look before the end is the one that counts.
        let status = fs::read_to_string(&status_file).unwrap_or_default();
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = most.and_then(|line| line.split_whitespace().next()).and_then(|word| word.parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or(0));
        if let Some(ended) = running.0.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let told = fs::read_to_string(&log).unwrap();
    assert!(ended.success(), "{told}");
    (peak_kib, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_times_the_judgments_take_no_more_memory() {
    let home = Home::init(THOUGHT, "ollama");
    fs::set_permissions(home.path.parent().unwrap(), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    home.object(&["scan"]);
    let mut filler = Filler::open(&home.below("thought.db")).await.unwrap();
    filler.fill(400).await.unwrap();
    let (few_kib, quiet) = export(&home, "few.jsonl");
    filler.fill(2_800).await.unwrap();
    let (many_kib, told) = export(&home, "many.jsonl");
    let lines =
        |name: &str| fs::read_to_string(home.path.parent().unwrap().join(name)).unwrap().lines().count();
    assert_eq!((lines("few.jsonl"), lines("many.jsonl")), (400, 3_200));
    assert!(few_kib > 1_024 && many_kib <= PEAK_KIB_MAX, "{few_kib} KiB, then {many_kib} KiB");
    assert!(many_kib <= few_kib + GROWTH_KIB_MAX, "{few_kib} KiB, then {many_kib} KiB");
    // A short export says nothing on its way; a long one tells every tenth, in lines, since this is no terminal.
    assert_eq!(quiet, "");
    let steps: Vec<&str> = told.lines().collect();
    assert_eq!((steps.len(), steps[0], steps[9]), (10, "320 of 3200 judgments", "3200 of 3200 judgments"));
}
