//! Homes that are not as they must be, homes in use, and stores of another time.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use thought_testkit::home::Home;
use thought_testkit::run::{Binary, argument};
use thought_testkit::world::World;

use crate::THOUGHT;

#[test]
fn a_home_that_is_not_there_is_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let binary = Binary::new(THOUGHT);
    for path in [folder.path().join("nowhere"), folder.path().to_owned()] {
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let refused = binary.run(&["--home", argument(&path), "--json", "status"]).exit(5);
        assert_eq!(refused.error()["code"], "no-home");
        assert!(refused.told().contains("init"), "{}", refused.stderr);
    }
    let refused = binary.run(&["status", "--json"]);
    assert!(matches!(refused.code, Some(3 | 5)), "without a name and without HOME: {}", refused.stderr);
}

#[test]
fn a_home_that_others_can_enter_is_refused_with_the_command_that_closes_it() {
    let home = Home::init(THOUGHT, "ollama");
    for mode in [0o755, 0o750, 0o701] {
        fs::set_permissions(&home.path, Permissions::from_mode(mode)).unwrap();
        for command in ["status", "serve", "doctor", "event-list"] {
            let refused = home.json(&[command]).exit(3);
            assert!(refused.told().contains("chmod"), "{mode:o} {command}: {}", refused.stderr);
        }
    }
    fs::set_permissions(&home.path, Permissions::from_mode(0o700)).unwrap();
    home.json(&["status"]).exit(0);
}

#[test]
fn a_configuration_that_is_a_link_is_refused() {
    let home = Home::init(THOUGHT, "ollama");
    let file = home.below("thought.toml");
    let elsewhere = home.folder.path().join("elsewhere.toml");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    home.json(&["status"]).exit(3);
    fs::remove_file(&file).unwrap();
    symlink(home.folder.path().join("absent"), &file).unwrap();
    home.json(&["status"]).exit(3);
    home.json(&["init"]).exit(3);
    assert!(!home.folder.path().join("absent").exists(), "nothing is written through a link");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    home.json(&["status"]).exit(3);
}

#[test]
fn a_store_that_is_a_link_is_refused() {
    let home = Home::init(THOUGHT, "ollama");
    let target = home.folder.path().join("elsewhere.db");
    symlink(&target, home.below("thought.db")).unwrap();
    let refused = home.json(&["status"]);
    assert!(matches!(refused.code, Some(3 | 8)), "{:?} {}", refused.code, refused.stderr);
    assert!(!target.exists());
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_alone() {
    let home = Home::init(THOUGHT, "ollama");
    home.json(&["scan"]).exit(0);
    let path = home.below("thought.db");
    let store = rusqlite::Connection::open(&path).unwrap();
    let version: i64 = store.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    store.pragma_update(None, "user_version", version + 1).unwrap();
    store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(store);
    let before = fs::read(&path).unwrap();
    for command in ["status", "event-list", "serve", "scan"] {
        let refused = home.json(&[command]).exit(3);
        assert_eq!(refused.error()["code"], "store-newer", "{command}");
    }
    assert!(fs::read(&path).unwrap() == before, "nothing is written to it");
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let home = Home::init(THOUGHT, "ollama");
    let bytes = vec![b'x'; 4096];
    fs::write(home.below("thought.db"), &bytes).unwrap();
    let refused = home.json(&["status"]);
    assert!(matches!(refused.code, Some(1 | 3 | 8)), "{:?} {}", refused.code, refused.stderr);
    let _told = refused.told();
    assert_eq!(fs::read(home.below("thought.db")).unwrap(), bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_serve_is_refused_while_everything_else_looks_on() {
    let world = World::start(THOUGHT).await;
    let mut serve = world.serve();
    let refused = world.home.json(&["serve"]).exit(4);
    assert!(refused.told().contains("another thought serve"), "{}", refused.stderr);
    for command in ["status", "event-list", "run-list", "declaration-list", "scan", "doctor"] {
        world.home.json(&[command]).exit(0);
    }
    world.turn("still at work", 1).await;
    assert!(serve.is_running());
    serve.kill();
    // A lock goes with its holder, however that ended.
    world.serve().stop();
}

#[test]
fn a_folder_below_the_home_that_is_a_link_is_not_followed() {
    for folder in ["agents", "prompts", "run"] {
        let home = Home::init(THOUGHT, "ollama");
        home.set("telegram", "ingress", Some("\"off\""));
        let elsewhere = home.folder.path().join("elsewhere");
        fs::rename(home.below(folder), &elsewhere).unwrap();
        symlink(&elsewhere, home.below(folder)).unwrap();
        let refused = home.json(&["serve"]).exit(3);
        assert!(refused.told().contains(folder), "{}", refused.stderr);
    }
}

#[test]
fn the_home_is_found_by_option_then_variable_then_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    let mut binary = Binary::new(THOUGHT);
    let set = |binary: &mut Binary, name: &str, path: &std::path::Path| {
        binary.env.insert(name.to_owned(), argument(path).to_owned());
    };
    set(&mut binary, "HOME", folder.path());
    let made = binary.run(&["init", "--json"]).exit(0).object();
    assert!(made["home"].as_str().unwrap().ends_with("/.local/share/thought"), "{made}");
    set(&mut binary, "XDG_DATA_HOME", &folder.path().join("data"));
    let made = binary.run(&["init", "--json"]).exit(0).object();
    assert!(made["home"].as_str().unwrap().ends_with("/data/thought"), "{made}");
    set(&mut binary, "THOUGHT_HOME", &folder.path().join("named"));
    let made = binary.run(&["init", "--json"]).exit(0).object();
    assert!(made["home"].as_str().unwrap().ends_with("/named"), "{made}");
    let option = folder.path().join("option");
    let made = binary.run(&["init", "--json", "--home", argument(&option)]).exit(0).object();
    assert!(made["home"].as_str().unwrap().ends_with("/option"), "{made}");
    assert_eq!(made["created"], true);
}
