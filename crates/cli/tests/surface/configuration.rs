//! `thought.toml`: what is refused, by every command, with file and line.

use thought_testkit::home::Home;
use thought_testkit::world::World;

use crate::THOUGHT;

/// Line of a piece of text in the configuration, from 1.
fn line_of(home: &Home, piece: &str) -> usize {
    home.configuration().lines().position(|line| line.contains(piece)).unwrap() + 1
}

#[test]
fn an_unknown_key_is_refused_with_file_line_and_the_nearest_known_key() {
    let home = Home::init(THOUGHT, "ollama");
    let whole = home.configuration();
    for (table, wrong, near) in [
        ("telegram", "alowed_chats", "allowed_chats"),
        ("provider.main", "base_ur", "base_url"),
        ("context", "max_file_byte", "max_file_bytes"),
        ("inspector", "listens", "listen"),
    ] {
        home.set(table, wrong, Some("1"));
        let place = format!("thought.toml:{}", line_of(&home, &format!("{wrong} = 1")));
        for command in [vec!["status"], vec!["serve"], vec!["doctor"], vec!["event-list"], vec!["scan"]] {
            let told = home.json(&command).exit(3).told();
            assert!(
                told.contains(&place) && told.contains(wrong) && told.contains(near),
                "{command:?}: {told}"
            );
        }
        home.set_configuration(&whole);
    }
    home.set_configuration(&whole.replace("[telegram]", "[telegrams]"));
    let told = home.json(&["status"]).exit(3).told();
    assert!(told.contains("thought.toml:") && told.contains("telegram"), "{told}");
    let printed = home.run(&["status"]).exit(3);
    assert!(printed.stderr.starts_with("error: ") && printed.stdout.is_empty(), "{}", printed.stderr);
}

#[test]
fn values_that_cannot_be_are_refused_by_every_command() {
    let home = Home::init(THOUGHT, "ollama");
    let whole = home.configuration();
    let rows = [
        ("provider.main", "base_url", "\"http://example.org/v1\""),
        ("provider.main", "base_url", "\"http://10.0.0.1:8080/v1\""),
        ("provider.main", "base_url", "\"ftp://127.0.0.1/\""),
        ("provider.main", "model", "\"\""),
        ("provider.main", "timeout_seconds", "0"),
        ("telegram", "api_url", "\"http://example.org\""),
        ("telegram", "allowed_chats", "[-100123]"),
        ("telegram", "source", "\"filesystem:telegram-agent-context\""),
        ("telegram", "ingress", "\"push\""),
        ("inspector", "listen", "\"0.0.0.0:8788\""),
        ("inspector", "listen", "\"192.168.1.5:8788\""),
        ("inspector", "listen", "\"[::]:8788\""),
        ("operator", "names", "[]"),
        ("store", "url", "\"sqlite:/tmp/elsewhere.db\""),
        ("store", "url", "\"sqlite:../elsewhere.db\""),
        ("context", "root", "\"/etc\""),
        ("context", "root", "\"../outside\""),
        ("context", "max_file_bytes", "0"),
        ("sandbox", "mode", "\"none\""),
        ("log", "level", "\"everything\""),
    ];
    for (table, key, value) in rows {
        home.set(table, key, Some(value));
        let place = format!("thought.toml:{}", line_of(&home, &format!("{key} = {value}")));
        for command in [vec!["status"], vec!["serve"]] {
            let refused = home.json(&command);
            assert_eq!(refused.code, Some(3), "{command:?} with {key} = {value}");
            let told = refused.told();
            // What a group wants is another list, and that one is named.
            let place = if key == "allowed_chats" { "telegram.allowed_users" } else { place.as_str() };
            assert!(told.contains(place), "{value}: {told}");
        }
        home.set_configuration(&whole);
    }
    assert!(home.json(&["status"]).code == Some(0), "the file itself is good");
}

#[test]
fn loopback_over_plain_http_is_allowed_in_every_spelling() {
    let home = Home::init(THOUGHT, "ollama");
    for root in
        ["http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1", "https://example.org/v1"]
    {
        home.set("provider.main", "base_url", Some(&format!("\"{root}\"")));
        home.json(&["status"]).exit(0);
    }
    // A name that only begins like loopback is not loopback.
    for root in [
        "http://127.0.0.1.example.org/v1",
        "http://localhost.example.org/v1",
        "http://127.0.0.1@example.org/",
    ] {
        home.set("provider.main", "base_url", Some(&format!("\"{root}\"")));
        home.json(&["status"]).exit(3);
    }
}

#[test]
fn what_is_no_toml_is_refused_without_repeating_it() {
    let home = Home::init(THOUGHT, "ollama");
    let whole = home.configuration();
    for (number, broken) in ["canary = = 1", "canary", "[canary", "x = \"canary"].iter().enumerate() {
        home.set_configuration(&format!("{whole}\n{broken}\n"));
        let refused = home.json(&["status"]).exit(3);
        assert!(refused.told().contains("thought.toml:"), "{number}: {}", refused.stderr);
    }
    std::fs::write(home.below("thought.toml"), [0xff, 0xfe]).unwrap();
    home.json(&["status"]).exit(3);
    std::fs::write(home.below("thought.toml"), vec![b'#'; 300 * 1024]).unwrap();
    home.json(&["status"]).exit(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_without_a_token_is_refused_with_what_to_do() {
    let mut world = World::start(THOUGHT).await;
    world.home.unset("THOUGHT_TELEGRAM_TOKEN");
    let told = world.home.json(&["serve"]).exit(3).told();
    assert!(told.contains("THOUGHT_TELEGRAM_TOKEN") && told.contains("ingress"), "{told}");
    world.home.set("telegram", "ingress", Some("\"off\""));
    let serve = world.serve();
    assert_eq!(serve.ready["ingress"], "off");
    serve.stop();
}
