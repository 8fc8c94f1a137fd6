//! The person's editor: its text is read once and shown before it counts, and whatever it does, no copy stays.

use thought_fakes::Reply;
use thought_testkit::wait_until;
use thought_testkit::world::World;

use crate::THOUGHT;
use crate::person::Person;
use crate::world::{
    calls, correction, decisions, editor, memory_of, private_folders, review_process, states, suggesting,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_text_is_shown_and_confirmed_before_it_is_decided() {
    let mut world = suggesting(&["- Likes tee."]).await;
    let before = memory_of(&world.home);
    let log = world.home.folder.path().join("log");
    let script = format!(
        "stat -c %a \"$1\" \"$(dirname \"$1\")\" > '{0}'; cat \"$1\" >> '{0}'; env >> '{0}'; sed -i s/tee/tea/ \"$1\"; \
         cp \"$1\" \"$1~\"",
        log.display()
    );
    editor(&mut world.home, &script);
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("+- Likes tee.");
    person.presses_and_sees("e", "your text 12 characters, sha256 ");
    person.sees("+- Likes tea.");
    person.presses_and_sees("\r", "hint: return decides nothing");
    person.presses_and_sees("a", "hint: that key does nothing");
    person.presses_and_sees("n", "hint: nothing is decided, and your text is dropped");
    person.sees("+- Likes tee.");
    person.presses_and_sees("e", "+- Likes tea.");
    person.presses_and_sees("y", "decided: edit, materialized");
    let left = person.leaves();
    assert_eq!(left.code, "0", "{}", left.screen);
    assert_eq!(memory_of(&world.home), format!("{before}\n- Likes tea.\n"));
    let decision = decisions(&world.home).remove(0);
    assert_eq!(decision["payload"]["replacement"]["text"], "- Likes tea.");
    assert!(private_folders(&world.home).is_empty());
    let seen = std::fs::read_to_string(&log).unwrap();
    let mut lines = seen.lines();
    assert_eq!([lines.next(), lines.next(), lines.next()], ["600", "700", "- Likes tee."].map(Some));
    assert!(!lines.any(|line| line.contains("tee")), "no variable holds content");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_that_fails_or_changes_nothing_decides_nothing_and_leaves_no_copy() {
    let mut world = suggesting(&["- Likes tee."]).await;
    for (script, told) in [
        ("true", "hint: the text is unchanged, and nothing is decided"),
        ("echo other > \"$1\"; exit 1", "hint: the editor ended with a failure; nothing is decided"),
        ("echo other > \"$1\"; kill -9 $$", "hint: the editor ended with a failure; nothing is decided"),
        (": > \"$1\"", "hint: the edited text is empty; nothing is decided"),
        ("rm \"$1\"", "hint: the edited file is not there"),
        ("rm \"$1\"; ln -s /etc/hostname \"$1\"", "hint: the edited file is not there"),
        ("printf '\\377' > \"$1\"", "hint: the edited text is not UTF-8"),
        ("head -c 200000 /dev/zero | tr '\\0' x > \"$1\"", "is too large; nothing is decided"),
    ] {
        editor(&mut world.home, script);
        let mut person = Person::consenting(&world.home, &[]);
        person.presses_and_sees("e", told);
        assert!(private_folders(&world.home).is_empty(), "{script}");
        person.quits();
    }
    world.home.env("VISUAL", "/nowhere/an-editor");
    let mut person = Person::consenting(&world.home, &[]);
    person.presses_and_sees("e", "hint: the editor ended with a failure; nothing is decided");
    person.quits();
    // A text beyond the bound in characters is refused by the rules, and stays for another try.
    editor(&mut world.home, "head -c 40000 /dev/zero | tr '\\0' x > \"$1\"");
    let mut person = Person::consenting(&world.home, &[]);
    person.presses_and_sees("e", "your text 40000 characters");
    person.presses_and_sees("y", "hint: not all of it was shown");
    person.presses("G");
    person.presses_and_sees("y", "the replacement is not within its bounds");
    person.presses_and_sees("n", "hint: nothing is decided");
    person.quits();
    assert!(decisions(&world.home).is_empty() && private_folders(&world.home).is_empty());
    assert_eq!(states(&world.home), [("undecided".to_owned(), "current".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_is_the_editors_and_what_a_killed_review_left_is_swept() {
    let mut world = suggesting(&["- Likes tee."]).await;
    let started = world.home.folder.path().join("started");
    let script = format!("echo other > \"$1\"; touch '{}'; exec sleep 60", started.display());
    editor(&mut world.home, &script);
    let mut person = Person::consenting(&world.home, &[]);
    person.presses("e");
    wait_until("the editor", || started.exists());
    assert_eq!(private_folders(&world.home).len(), 1);
    person.types("\u{3}");
    person.sees("nothing is decided");
    assert!(private_folders(&world.home).is_empty());
    person.quits();
    // Asked to end from outside, it takes the editor and the copy with it.
    std::fs::remove_file(&started).unwrap();
    let script = format!("kill -TERM $(cat '{}'); ", world.home.folder.path().join("pid").display());
    editor(&mut world.home, &format!("{script} exec sleep 60"));
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("[q]uit  [?]");
    let pid = review_process(&world.home);
    std::fs::write(world.home.folder.path().join("pid"), pid.to_string()).unwrap();
    person.types("e");
    let left = person.leaves();
    assert!(left.mode.contains(" icanon"), "{}", left.mode);
    assert!(private_folders(&world.home).is_empty());
    // Killed, it leaves the copy, and the next review takes it away.
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("[q]uit  [?]");
    let pid = review_process(&world.home);
    std::fs::write(world.home.folder.path().join("pid"), pid.to_string()).unwrap();
    editor(&mut world.home, &script.replace("-TERM", "-KILL"));
    person.types("e");
    person.leaves();
    assert_eq!(private_folders(&world.home).len(), 1);
    let person = Person::consenting(&world.home, &[]);
    person.quits();
    assert!(private_folders(&world.home).is_empty() && decisions(&world.home).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_text_outlives_a_base_that_moves_under_it() {
    let mut world = suggesting(&["- Likes tee."]).await;
    editor(&mut world.home, "sed -i s/tee/tea/ \"$1\"");
    let mut person = Person::consenting(&world.home, &[]);
    person.presses_and_sees("e", "+- Likes tea.");
    person.sees("[q]uit  [?]");
    let by_hand = format!("{}- By hand.\n", memory_of(&world.home));
    std::fs::write(world.home.below("context/memory.md"), &by_hand).unwrap();
    person.types("y");
    person.sees("hint: your text is kept");
    person.presses_and_sees("p", "proposed again as evt_");
    person.sees("+- Likes tee.");
    // The editor finds nothing left to change in it.
    person.presses_and_sees("e", "+- Likes tea.");
    person.presses_and_sees("y", "decided: edit, materialized");
    person.leaves();
    assert_eq!(memory_of(&world.home), format!("{by_hand}\n- Likes tea.\n"));
    assert_eq!(decisions(&world.home).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_is_edited_without_the_line_end_of_the_editor() {
    let mut world = World::start(THOUGHT).await;
    world.home.set("operator", "names", Some("[\"alex\"]"));
    let says = |text: &str| Reply::Text(text.to_owned());
    world.model.script(vec![says("It is Monday."), calls(vec![correction("latest", "It is Tuesday.")])]);
    let serve = world.serve();
    world.turn("What day is it?", 1).await;
    world.turn("Wrong.", 2).await;
    serve.stop();
    editor(&mut world.home, "sed -i s/Tuesday/Friday/ \"$1\"");
    let mut person = Person::consenting(&world.home, &[]);
    person.sees("-It is Monday.");
    person.presses_and_sees("e", "+It is Friday.");
    person.presses_and_sees("y", "decided: edit, projected");
    person.leaves();
    let judgment = world.home.events("judgment.recorded@2").remove(0);
    assert_eq!(judgment["payload"]["replacement"]["summary"], "It is Friday.");
}
