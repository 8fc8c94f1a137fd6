//! `verify` from outside: what it says of a whole home, of a cut one, and of one whose tail is gone.

use thought_fakes::{ChatSpec, MessageSpec, PhotoSpec, UserSpec};
use thought_testkit::world::{CHAT, World};

use crate::world::{at, copy, lived_in};

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_home_is_said_to_be_one_and_nothing_is_changed() {
    let world = lived_in().await;
    let before = world.home.lines(&["event-list"]).len();
    let said = world.home.object(&["verify"]);
    assert_eq!(said["whole"], true, "{said}");
    assert_eq!(said["events"].as_u64().unwrap() as usize, before);
    // Five turns, the failed one too; four proposals.
    assert_eq!((said["contexts"].as_u64(), said["chains"].as_u64()), (Some(6), Some(4)));
    assert_eq!(said["sources"], world.home.object(&["status"])["sources"]);
    let printed = world.home.run(&["verify"]).exit(0).stdout;
    assert!(printed.contains("everything is what was written"), "{printed}");
    assert_eq!(world.home.lines(&["event-list"]).len(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tail_that_was_taken_away_is_found_against_heads_that_were_printed() {
    let world = lived_in().await;
    let folder = tempfile::tempdir().unwrap();
    let heads = folder.path().join("heads.json");
    let status = world.home.json(&["status"]).exit(0).stdout;
    std::fs::write(&heads, &status).unwrap();
    let heads = heads.to_str().unwrap();
    world.home.json(&["verify", "--against", heads]).exit(0);

    let shorter = folder.path().join("shorter");
    copy(&world.home.path, &shorter);
    let raw = rusqlite::Connection::open(shorter.join("thought.db")).unwrap();
    raw.pragma_update(None, "foreign_keys", false).unwrap();
    // The newest notice of the channel, with everything that knows of it, so that the rest fits together again.
    let source = "(SELECT id FROM sources WHERE name = 'delivery:telegram:stream')";
    let last = format!("(SELECT max(position) FROM events WHERE source = {source})");
    let cause: String = raw
        .query_row(&format!("SELECT parent_id FROM events WHERE position = {last}"), [], |row| row.get(0))
        .unwrap();
    let kind = "kind = 'notice:run-failed'";
    raw.execute_batch(&format!(
        "DELETE FROM chunks WHERE delivery IN (SELECT ordinal FROM deliveries WHERE cause = '{cause}' AND {kind});
         DELETE FROM deliveries WHERE cause = '{cause}' AND {kind};
         UPDATE sources SET head = head - 1,
            head_sha256 = (SELECT previous_sha256 FROM events WHERE position = {last}) WHERE id = {source};
         DELETE FROM events WHERE position = {last};"
    ))
    .unwrap();
    drop(raw);
    let shorter = at(&world, &shorter);
    let said = shorter.json(&["verify", "--against", heads]).exit(3);
    assert!(said.stdout.contains("tail-missing"), "{}", said.stdout);
    assert_eq!(said.error()["code"], "not-whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_holds_no_heads_is_refused_and_a_missing_one_is_not_found() {
    let world = World::start(crate::THOUGHT).await;
    world.home.json(&["scan"]).exit(0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.json");
    std::fs::write(&file, "{\"what\": 1}").unwrap();
    let refused = world.home.json(&["verify", "--against", file.to_str().unwrap()]).exit(3);
    assert_eq!(refused.error()["code"], "no-heads");
    world.home.json(&["verify", "--against", folder.path().join("none").to_str().unwrap()]).exit(5);
    world.home.json(&["verify"]).exit(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_that_is_changed_gone_or_nobodys_is_named() {
    let world = World::start(crate::THOUGHT).await;
    let sides = [40_u32.to_be_bytes(), 30_u32.to_be_bytes()].concat();
    let picture =
        [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &sides, b"and what stands behind the head"].concat();
    let serve = world.serve();
    let photo = PhotoSpec::single(picture);
    world.bot.push(&MessageSpec::photo(ChatSpec::private(CHAT), UserSpec::person(CHAT), photo, None));
    world.home.wait_for_deliveries("reply", 1);
    serve.stop();
    let said = world.home.object(&["verify"]);
    assert_eq!((&said["whole"], &said["blobs"]), (&true.into(), &1.into()), "{said}");
    let folder = world.home.below("blobs");
    let name =
        std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
    let blob = folder.join(&name);
    let whole = std::fs::read(&blob).unwrap();

    let mut changed = whole.clone();
    changed[40] ^= 1;
    std::fs::write(&blob, &changed).unwrap();
    let said = world.home.json(&["verify"]).exit(3);
    assert!(said.stdout.contains(&name) && said.stdout.contains("\"changed\""), "{}", said.stdout);
    std::fs::remove_file(&blob).unwrap();
    let said = world.home.json(&["verify"]).exit(3);
    assert!(said.stdout.contains(&name) && said.stdout.contains("\"missing\""), "{}", said.stdout);
    std::fs::write(&blob, &whole).unwrap();
    // One that nobody names is told, and is no fault: a cut leaves it before its event.
    std::fs::write(folder.join("0".repeat(64)), b"nobody's").unwrap();
    let said = world.home.object(&["verify"]);
    assert_eq!((&said["whole"], &said["unnamedBlobs"]), (&true.into(), &serde_json::json!(["0".repeat(64)])));
}

/// Overwrites payloads in a copy of a home, and gives what `verify` prints there; `backup` refuses it too.
#[track_caller]
fn spoiled(world: &World, sql: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let spoiled = folder.path().canonicalize().unwrap().join("spoiled");
    copy(&world.home.path, &spoiled);
    let raw = rusqlite::Connection::open(spoiled.join("thought.db")).unwrap();
    assert!(raw.execute(sql, []).unwrap() > 0, "{sql}");
    drop(raw);
    let home = at(world, &spoiled);
    let said = home.json(&["verify"]).exit(3);
    assert_eq!(said.error()["code"], "not-whole", "{}", said.stderr);
    let backup = folder.path().join("backup.tar");
    let kept = home.json(&["backup", "--output", backup.to_str().unwrap()]).exit(3);
    assert_eq!(kept.error()["code"], "not-whole", "{}", kept.stderr);
    assert!(!backup.exists());
    said.stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_is_no_json_or_larger_than_any_is_named_whatever_its_type() {
    let world = lived_in().await;
    let raw = rusqlite::Connection::open(world.home.below("thought.db")).unwrap();
    let mut newest = raw.prepare("SELECT type, id, max(position) FROM events GROUP BY type").unwrap();
    let newest: Vec<(String, String, i64)> = newest
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(newest.len() > 8, "{newest:?}");
    for (index, (name, id, _)) in newest.iter().enumerate() {
        let bytes = ["x'7b'", "x'ff00'", "x''"][index % 3];
        let said = spoiled(&world, &format!("UPDATE events SET payload = {bytes} WHERE id = '{id}'"));
        assert!(said.contains(id.as_str()) && said.contains("payload-unreadable"), "{name}: {said}");
    }
    spoiled(&world, "UPDATE events SET payload = x'7b'");
    let (name, id, position) = &newest[0];
    let said = spoiled(&world, &format!("UPDATE events SET payload = zeroblob(200000000) WHERE id = '{id}'"));
    assert!(said.contains("unreadable") && said.contains(&position.to_string()), "{name}: {said}");
}
