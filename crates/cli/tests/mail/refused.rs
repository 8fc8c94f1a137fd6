//! Everything that deviates is refused before anything is appended, each with its own reason; a repetition is met.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use thought_testkit::home::Home;
use thought_testkit::run::{Binary, Done, argument};

use crate::letter::{WAIT, arguments, file, installed, letter, send};
use crate::{STREAM, THOUGHT};

/// One value of a good command replaced.
fn with(home: &Home, option: &str, value: &str) -> Done {
    let mut all = arguments(home.folder.path(), letter("t-1", "m-1", "Hello"));
    let at = all.iter().position(|argument| argument == option).unwrap();
    all[at + 1] = value.to_owned();
    home.json(&all.iter().map(String::as_str).collect::<Vec<_>>())
}

#[track_caller]
fn refused(done: Done, code: &str) -> Done {
    let done = done.exit(3);
    assert_eq!(done.error()["code"], code, "{}", done.stderr);
    assert_eq!(done.stdout, "");
    done
}

#[track_caller]
fn assert_nothing_was_appended(home: &Home) {
    assert_eq!(home.lines(&["event-list"]).len(), 0);
}

#[test]
fn an_address_that_deviates_is_refused_with_its_own_reason() {
    let home = Home::init(THOUGHT, "ollama");
    for name in ["Co", "co ", "Cameron Pfiffer", "c", "co_", "co-", ""] {
        refused(with(&home, "--from", name), "agent-id");
    }
    refused(with(&home, "--to", "The Stream"), "agent-id");
    refused(with(&home, "--from", "mallory"), "route-refused");
    refused(with(&home, "--from", "operator"), "route-refused");
    refused(with(&home, "--from", STREAM), "route-refused");
    refused(with(&home, "--to", "stream-telegram-conversation"), "route-refused");
    refused(with(&home, "--to", "co"), "route-refused");
    for id in ["", ".x", "a b", "a/b", "ä", &"x".repeat(129)] {
        refused(with(&home, "--thread", id), "mail-id");
        refused(with(&home, "--message-id", id), "mail-id");
    }
    assert_nothing_was_appended(&home);
    send(&home, letter("t-1", "m-1", "Hello"), &[]).exit(0);
}

#[test]
fn a_text_that_deviates_is_refused_and_never_quoted() {
    let home = Home::init(THOUGHT, "ollama");
    let canary = "canary-text";
    let texts: [(&[u8], &str); 6] = [
        (b"", "text"),
        (b" \n\t\n", "text"),
        (b"canary-text\0", "text"),
        (b"canary-text \xff\xfe", "not-utf8"),
        (&"ä".repeat(16_385).into_bytes(), "text"),
        (&"x".repeat(70_000).into_bytes(), "too-large"),
    ];
    for (text, code) in texts {
        let file = file(home.folder.path(), "odd.txt", text);
        let done = refused(with(&home, "--file", argument(&file)), code);
        assert!(!done.stderr.contains(canary), "{}", done.stderr);
    }
    assert_nothing_was_appended(&home);
    let longest = "\u{1F600}".repeat(16_384);
    send(&home, letter("t-1", "m-1", &longest), &[]).exit(0);
    assert_eq!(home.events("source.agent.message@1")[0]["payload"]["text"], longest.as_str());
}

#[test]
fn a_file_that_is_not_the_callers_own_is_refused() {
    let home = Home::init(THOUGHT, "ollama");
    let folder = home.folder.path();
    let good = file(folder, "good.txt", b"Hello");
    let link = folder.join("link.txt");
    symlink(&good, &link).unwrap();
    refused(with(&home, "--file", argument(&link)), "not-a-regular-file");
    refused(with(&home, "--file", argument(folder)), "not-a-regular-file");
    refused(with(&home, "--file", "/dev/null"), "not-a-regular-file");
    let pipe = folder.join("pipe.txt");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    refused(with(&home, "--file", argument(&pipe)), "not-a-regular-file");
    for mode in [0o620, 0o602, 0o666] {
        fs::set_permissions(&good, Permissions::from_mode(mode)).unwrap();
        let told = refused(with(&home, "--file", argument(&good)), "open-to-others").told();
        assert!(told.contains("chmod go-w"), "{told}");
    }
    let absent = with(&home, "--file", argument(&folder.join("absent.txt"))).exit(5);
    assert_eq!(absent.error()["code"], "no-file");
    assert_nothing_was_appended(&home);
    // Others may read it, if its owner wants it so.
    fs::set_permissions(&good, Permissions::from_mode(0o644)).unwrap();
    with(&home, "--file", argument(&good)).exit(0);
}

#[test]
fn a_text_on_the_command_line_is_refused_and_not_repeated() {
    let home = Home::init(THOUGHT, "ollama");
    for more in [&["canary-words"][..], &["--text", "canary-words"], &["--text=canary-words"]] {
        let done = refused(send(&home, letter("t-1", "m-1", "Hello"), more), "text-as-argument");
        assert!(!done.stderr.contains("canary"), "{}", done.stderr);
    }
    assert_nothing_was_appended(&home);
}

#[test]
fn the_response_is_not_shown_without_the_acknowledgment_and_nothing_is_sent_then() {
    let home = Home::init(THOUGHT, "ollama");
    for more in [&["--show-response"][..], &["--show-response", "--wait-seconds", "1"]] {
        refused(send(&home, letter("t-1", "m-1", "Hello"), more), "not-acknowledged");
    }
    assert_nothing_was_appended(&home);
    for more in [&["--wait-seconds", "-1"][..], &["--wait-seconds", "soon"], &["--wait-seconds", "86401"]] {
        send(&home, letter("t-1", "m-1", "Hello"), more).exit(2);
    }
    assert_nothing_was_appended(&home);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_message_is_met_and_another_text_under_its_identity_is_a_conflict() {
    let world = installed().await;
    let home = &world.home;
    let hello = letter("t-1", "m-1", "Hello");
    let first = send(home, hello, &[]).exit(0).object();
    assert_eq!((&first["message"], &first["status"]), (&"m-1".into(), &"accepted".into()));
    let again = send(home, hello, &[]).exit(0).object();
    assert_eq!((&again["event"], &again["status"]), (&first["event"], &"already-accepted".into()));
    let conflict = send(home, letter("t-1", "m-1", "canary-other"), &[]).exit(4);
    assert_eq!(conflict.error()["code"], "conflict");
    assert!(!conflict.stderr.contains("canary"));
    // The same message id in another thread is another message.
    let other = send(home, letter("t-2", "m-1", "canary-other"), &[]).exit(0).object();
    assert_eq!(other["status"], "accepted");
    assert_ne!(other["event"], first["event"]);
    // Also after it was answered, and after the process that answered is gone.
    let serve = world.serve();
    send(home, hello, &["--wait-seconds", WAIT]).exit(0);
    serve.stop();
    let late = send(home, hello, &[]).exit(0).object();
    assert_eq!((&late["event"], &late["status"]), (&first["event"], &"already-accepted".into()));
    send(home, letter("t-1", "m-1", "Hello "), &[]).exit(4);
    assert_eq!(home.events("source.agent.message@1").len(), 2);
}

#[test]
fn a_message_is_sent_without_a_key_a_token_or_a_network() {
    let home = Home::init(THOUGHT, "anthropic");
    // Named, and not to be read: a key file that others can read is refused by whoever reads it.
    for (table, key) in [("provider.main", "key_file"), ("telegram", "token_file")] {
        let secret = home.below(key);
        fs::write(&secret, "canary-secret").unwrap();
        fs::set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
        home.set(table, &key.replace("_file", "_env"), None);
        home.set(table, key, Some(&format!("\"{key}\"")));
    }
    home.json(&["serve"]).exit(3);
    let own = arguments(home.folder.path(), letter("t-1", "m-1", "Hello"));
    // A network namespace of its own has no way out, not even a loopback that is up.
    let unshared = Binary::new("/usr/bin/unshare");
    let mut all = vec!["--map-root-user", "--net", THOUGHT, "--home", argument(&home.path), "--json"];
    all.extend(own.iter().map(String::as_str));
    let sent = unshared.run(&all).exit(0).object();
    assert_eq!(sent["status"], "accepted");
    // Before anything is installed there is nobody who answers, and a wait runs out.
    all.extend(["--wait-seconds", "1"]);
    let waited = unshared.run(&all).exit(7);
    assert_eq!(
        (&waited.object()["status"], &waited.error()["code"]),
        (&"pending".into(), &"wait-ran-out".into())
    );
}
