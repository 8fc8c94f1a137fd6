//! The list of system calls against the real worker: each rule is one that it needs.

use thought_protocol::packet::Packet;
use thought_sandbox::allowed::ALLOWED;
use thought_sandbox::{ExitKind, Launcher, Tier};

use crate::home::launcher;
use crate::real::{answer_of, attempt, large};
use crate::table::{cases, packet};
use crate::worker::WITHOUT_RULE;

/// What a worker needs in a crash alone, which no packet and no answer brings about: the unwinder of a panic, and the
/// runtime's last words. The sandbox room's own test holds these.
const OF_A_CRASH: &[&str] = &["futex", "write"];

pub(crate) fn every_rule_is_used() {
    let lives = lives();
    assert!(lives_whole(&launcher(Tier::Full, "__without-rule=none"), &lives), "with every rule it lives");
    let mut unused = Vec::new();
    for (index, rule) in ALLOWED.iter().enumerate() {
        let argument: &'static str = format!("{WITHOUT_RULE}{index}").leak();
        if lives_whole(&launcher(Tier::Full, argument), &lives) {
            unused.push(rule.name);
        }
    }
    unused.sort_unstable();
    assert_eq!(unused, OF_A_CRASH, "rules that the real worker does not use");
}

/// Packets and answers of every kind, for both APIs: small and large, with images and calls, good and bad.
fn lives() -> Vec<(Packet, Vec<u8>)> {
    let mut lives = Vec::new();
    for api in ["anthropic", "openai"] {
        lives.push((large(api, 1024 * 1024, &[1024 * 1024]), answer_of(api, "Yes.")));
        lives.push((packet(api), answer_of(api, &"c".repeat(1024 * 1024))));
        lives.push((packet(api), b"no answer".to_vec()));
    }
    lives.extend(cases().into_iter().step_by(40).map(|case| (case.packet, case.body)));
    lives
}

fn lives_whole(launcher: &Launcher, lives: &[(Packet, Vec<u8>)]) -> bool {
    lives.iter().all(|(packet, answer)| {
        attempt(launcher, packet, answer).is_some_and(|done| done.end == ExitKind::Clean)
    })
}
