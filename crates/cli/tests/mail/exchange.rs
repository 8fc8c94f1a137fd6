//! A message, its run, and its one response.

use serde_json::{Value, json};
use thought_fakes::Reply;
use thought_testkit::wait_for;
use thought_testkit::world::World;

use crate::letter::{WAIT, ask, installed, letter, pairs, said, send};
use crate::{STREAM, THOUGHT};

fn one(events: &[Value], name: &str) -> Value {
    let full = format!("stream.thought.{name}");
    let found: Vec<&Value> = events.iter().filter(|event| event["type"] == full.as_str()).collect();
    assert_eq!(found.len(), 1, "{name}");
    found[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_by_one_typed_response_that_its_sender_reads() {
    let world = World::start(THOUGHT).await;
    world.model.set_default_reply(|_| Reply::Text("Well enough.".to_owned()));
    let serve = world.serve();
    let home = &world.home;
    let answer = ask(home, letter("t-1", "m-1", "How are you?"));
    assert_eq!((&answer["status"], &answer["response"]), (&json!("completed"), &json!("Well enough.")));
    let keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["event", "message", "response", "run", "status"]);

    let events = home.lines(&["event-list", "--acknowledge-sensitive-private"]);
    let source = one(&events, "source.agent.message@1");
    assert_eq!(source["id"], answer["event"]);
    let fields =
        json!({"source": "agent-message:co", "actor": "agent:co", "privacy": "sensitive", "sequence": 1});
    assert_holds(&source, &fields);
    assert_eq!((&source["externalId"], &source["correlationId"]), (&json!("m-1"), &json!("t-1")));
    assert_eq!(source["rootId"], source["id"]);
    let payload = json!({
        "messageId": "m-1", "threadId": "t-1", "senderAgentId": "co", "recipientAgentId": STREAM,
        "text": "How are you?",
    });
    assert_eq!(source["payload"], payload);

    let run = home.object(&["run-show", answer["run"].as_str().unwrap()]);
    let output = one(&events, "derived.agent.message@1");
    let endpoint = format!("agent:{STREAM}");
    assert_holds(
        &output,
        &json!({
            "source": endpoint, "actor": endpoint, "privacy": "sensitive", "rootId": source["id"],
            "parentId": source["id"], "correlationId": "t-1",
        }),
    );
    assert_holds(
        &output["payload"],
        &json!({
            "summary": "Well enough.", "truncated": false, "contract": "conversation-text@1", "run": answer["run"],
            "provider": "main", "model": "fake-model", "contextSnapshot": run["snapshot"], "threadId": "t-1",
            "senderAgentId": STREAM, "recipientAgentId": "co", "inReplyTo": "m-1", "inputSequence": 1,
        }),
    );
    let declared = home.lines(&["declaration-list"]);
    let declared = declared.iter().find(|row| row["id"] == STREAM).unwrap();
    let agent = json!({"id": STREAM, "version": 1, "fingerprint": declared["fingerprint"]});
    assert_eq!(output["payload"]["agent"], agent);
    let completed = one(&events, "run.completed@1");
    assert_holds(
        &completed["payload"],
        &json!({"run": answer["run"], "output": output["id"], "proposals": []}),
    );
    assert_eq!(world.model.request_count(), 1);
    serve.stop();
}

#[track_caller]
fn assert_holds(event: &Value, fields: &Value) {
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(&event[name], value, "{name} of {event}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_read_later_and_by_lines_too() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let home = &world.home;
    let hello = letter("t-1", "m-1", "Hello?");
    let completed = send(home, hello, &["--wait-seconds", WAIT]).exit(0).object();
    assert_eq!(completed.get("response"), None);
    serve.stop();
    // Without a wait it is looked for once; the process that answered is gone.
    let read = send(home, hello, &["--show-response", "--acknowledge-sensitive-private"]).exit(0).object();
    assert_eq!((&read["status"], &read["response"]), (&json!("completed"), &json!("Hello.")));
    let own = crate::letter::arguments(home.folder.path(), hello);
    let mut lines: Vec<&str> = own.iter().map(String::as_str).collect();
    lines.extend(["--show-response", "--acknowledge-sensitive-private"]);
    let printed = home.run(&lines).exit(0);
    assert_eq!(printed.stdout.lines().count(), 2, "{}", printed.stdout);
    assert!(printed.stdout.ends_with("\nHello.\n"), "{}", printed.stdout);
    // The acknowledgment alone shows nothing.
    let dark = send(home, hello, &["--acknowledge-sensitive-private"]).exit(0);
    assert!(!dark.stdout.contains("Hello."), "{}", dark.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_an_answer_leaves_no_response_and_the_wait_says_so() {
    let world = World::start(THOUGHT).await;
    let home = &world.home;
    world.model.script(vec![Reply::Refusal { text: "canary-refused".to_owned() }]);
    let serve = world.serve();
    let more = ["--wait-seconds", WAIT, "--show-response", "--acknowledge-sensitive-private"];
    let failed = send(home, letter("t-1", "m-1", "One"), &more).exit(9);
    assert_eq!(
        (&failed.object()["status"], &failed.error()["code"]),
        (&json!("failed"), &json!("no-answer"))
    );
    assert!(failed.object()["run"].is_string() && failed.object().get("response").is_none());
    assert!(!format!("{}{}", failed.stdout, failed.stderr).contains("canary"));

    world.model.set_default_reply(|_| Reply::Hang);
    let pending = send(home, letter("t-1", "m-2", "Two"), &["--wait-seconds", "1"]).exit(7);
    assert_eq!(
        (&pending.object()["status"], &pending.error()["code"]),
        (&json!("pending"), &json!("wait-ran-out"))
    );
    let run = wait_for("the run", || {
        home.runs().into_iter().find(|run| run["trigger"] == pending.object()["event"])
    });
    home.json(&["run-abandon", run["id"].as_str().unwrap()]).exit(0);
    let given_up = send(home, letter("t-1", "m-2", "Two"), &["--wait-seconds", WAIT]).exit(9);
    assert_eq!(given_up.object()["status"], "abandoned");
    assert!(home.events("derived.agent.message@1").is_empty(), "no response is made up");

    // A retried run is what is followed from then on.
    world.model.set_default_reply(|_| Reply::Text("After all.".to_owned()));
    let first = home.runs()[0]["id"].as_str().unwrap().to_owned();
    home.json(&["run-retry", &first]).exit(0);
    let answer = ask(home, letter("t-1", "m-1", "One"));
    assert_eq!(answer["response"], "After all.");
    serve.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_senders_at_once_are_all_accepted_once_and_each_thread_keeps_its_order() {
    let world = installed().await;
    let home = &world.home;
    let statuses: Vec<(usize, Value)> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..20)
            .map(|number| {
                scope.spawn(move || {
                    let (thread, id) = (format!("t-{}", number % 4), format!("m-{number}"));
                    let text = format!("Message {number}");
                    (number, send(home, letter(&thread, &id, &text), &[]).exit(0).object())
                })
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|(_, sent)| sent["status"] == "accepted"), "{statuses:?}");
    let events = home.events("source.agent.message@1");
    let sequences: Vec<u64> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=20).collect::<Vec<u64>>());
    assert!(events.windows(2).all(|pair| pair[1]["previousSha256"] == pair[0]["chainSha256"]));

    let serve = world.serve();
    home.wait_for_runs("completed", 20);
    serve.stop();
    let outputs = home.events("derived.agent.message@1");
    assert_eq!(outputs.len(), 20);
    assert_eq!(world.model.request_count(), 20, "one request a message");
    for thread in 0..4 {
        let name = format!("t-{thread}");
        let asked: Vec<&Value> =
            events.iter().filter(|event| event["correlationId"] == *name).map(|event| &event["id"]).collect();
        let answered: Vec<&Value> = outputs
            .iter()
            .filter(|event| event["correlationId"] == *name)
            .map(|event| &event["parentId"])
            .collect();
        assert_eq!(asked, answered, "thread {name} was answered in order");
        // The last request of the thread carries the four exchanges before it.
        let last = events.iter().rfind(|event| event["correlationId"] == *name).unwrap();
        let text = last["payload"]["text"].as_str().unwrap();
        let requests = world.model.requests();
        let request = requests.iter().find(|request| said(request).last().unwrap().1 == text).unwrap();
        assert_eq!(pairs(&said(request)).len(), 9);
    }
}
