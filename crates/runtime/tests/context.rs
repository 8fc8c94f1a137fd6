//! Contexts built from a real store, and rebuilt from it after everything around them has changed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

#[path = "context/home.rs"]
#[expect(unreachable_pub, reason = "a module of this test binary alone")]
mod home;

use std::sync::atomic::Ordering;

use home::{AGENT, Blobs, CHAT, Home, TELEGRAM, binding};
use thought_contract::conversation::ReplyOmission;
use thought_contract::payload as p;
use thought_contract::run::{BlockedReason, HeldReason, run_id, snapshot_id};
use thought_contract::snapshot::Snapshot;
use thought_protocol::packet::{Packet, PacketMessage};
use thought_protocol::proposal::ToolName;
use thought_protocol::{EventId, Sensitive, Sha256Hex};
use thought_runtime::context::{
    Built, ContextError, NoImages, PendingReplies, model_binding, pending_reply, rebuild,
};
use thought_store::command::{NewSnapshot, Presence};
use thought_store::row::HistoryQuery;

fn said(packet: &Packet) -> Vec<String> {
    packet
        .messages
        .iter()
        .map(|message| match message {
            PacketMessage::User { text, .. } => format!("user: {text}"),
            PacketMessage::Assistant { text } => format!("assistant: {text}"),
            PacketMessage::ToolTurn { calls } => format!("calls: {}", calls.len()),
        })
        .collect()
}

#[tokio::test]
async fn the_first_turn_holds_the_documents_and_the_words() {
    let home = Home::new().await;
    let trigger = home.say("hello").await;
    let built = home.build(TELEGRAM, &trigger).await;
    assert_eq!(said(&built.packet), ["user: hello"]);
    for once in ["I am calm.", "- Likes tea."] {
        assert_eq!(built.packet.system.matches(once).count(), 1);
    }
    assert_eq!(home.looks.count.load(Ordering::SeqCst), 1);
    let run = run_id(TELEGRAM, 1, &trigger.envelope.id, 0);
    assert_eq!(built.snapshot.id, snapshot_id(&run));
    assert_eq!(built.snapshot.packet_sha256, Sha256Hex::of(built.packet_bytes.expose()));
    let snapshot = Snapshot::decode(built.snapshot.bytes.expose()).unwrap();
    assert_eq!(snapshot, built.snapshot_decoded);
    assert_eq!(Sha256Hex::of(&snapshot.canonical_bytes().unwrap()), built.snapshot.sha256);
    assert_eq!(snapshot.binding(), model_binding(&binding()));
    assert_eq!(snapshot.provenance.conversation, format!("{CHAT}:0"));
    assert_eq!(snapshot.provenance.ordinal, 1);
}

#[tokio::test]
async fn the_second_turn_carries_the_first_and_failed_turns_keep_the_words() {
    let home = Home::new().await;
    home.exchange("one", "two").await;
    let failed = home.say("three").await;
    home.fail(&failed).await;
    home.exchange("four \u{1F642}", "five").await;
    let trigger = home.say("six").await;
    let built = home.build(TELEGRAM, &trigger).await;
    assert_eq!(
        said(&built.packet),
        [
            "user: one",
            "assistant: two",
            "user: three",
            "user: four \u{1F642}",
            "assistant: five",
            "user: six"
        ]
    );
    assert_eq!(built.packet.tools, ToolName::ALL);
    assert_eq!(built.snapshot_decoded.correction_targets().len(), 2);
    assert_eq!(built.snapshot_decoded.memory_target().unwrap().path, "memory.md");
}

#[tokio::test]
async fn another_chat_and_the_agents_thread_never_mix() {
    let home = Home::new().await;
    home.exchange("in the chat", "answered in the chat").await;
    home.say_in(1, "in another chat", Vec::new()).await;
    let letter = home.write("t1", "from co").await;
    home.settle(AGENT, &letter, "to co").await;
    home.write("t2", "in another thread").await;
    let trigger = home.say("now").await;
    let built = home.build(TELEGRAM, &trigger).await;
    assert_eq!(said(&built.packet), ["user: in the chat", "assistant: answered in the chat", "user: now"]);
    let letter = home.write("t1", "again").await;
    let built = home.build(AGENT, &letter).await;
    assert_eq!(said(&built.packet), ["user: from co", "assistant: to co", "user: again"]);
    assert!(!String::from_utf8(built.packet_bytes.into_inner()).unwrap().contains("evt_"));
}

#[tokio::test]
async fn a_rebuild_is_equal_in_every_byte_after_everything_has_changed() {
    let home = Home::new().await;
    home.exchange("one", "two").await;
    let trigger = home.say("three").await;
    let (run, built) = home.start(TELEGRAM, &trigger).await;
    home.document("identity.md", b"---\nid: identity\n---\nI am loud.\n").await;
    home.remove("memory.md").await;
    home.install(TELEGRAM, |text| text.replace("version: 1", "version: 2")).await;
    home.say("later").await;
    let (snapshot, packet) = rebuild(&home.reader(), &NoImages, &run).await.unwrap();
    assert_eq!(snapshot, built.snapshot_decoded);
    assert_eq!(packet.encode().unwrap(), built.packet_bytes.into_inner());
}

#[tokio::test]
async fn a_missing_identity_holds_the_run_and_a_removed_one_too() {
    let home = Home::bare();
    home.install(TELEGRAM, |text| text).await;
    let trigger = home.say("hello").await;
    let held = |built| matches!(built, Built::Held(HeldReason::DocumentMissing));
    assert!(held(home.try_build(TELEGRAM, &trigger, PendingReplies::Await).await.unwrap()));
    home.document("identity.md", b"---\nid: identity\n---\nx\n").await;
    let built = home.build(TELEGRAM, &trigger).await;
    assert_eq!(built.snapshot_decoded.provenance.missing_documents, ["memory.md"]);
    home.remove("identity.md").await;
    assert!(held(home.try_build(TELEGRAM, &trigger, PendingReplies::Await).await.unwrap()));
}

#[tokio::test]
async fn a_memory_that_is_missing_broken_or_no_text_is_no_target_and_the_run_goes_on() {
    let home = Home::new().await;
    let trigger = home.say("hello").await;
    let offers = async || {
        let built = home.build(TELEGRAM, &trigger).await;
        (built.packet.tools.contains(&ToolName::RequestMemoryChange), built.packet.system)
    };
    assert!(offers().await.0);
    home.document("memory.md", b"no head, but tea leaves").await;
    let (offered, system) = offers().await;
    assert!(!offered && system.contains("no head, but tea leaves"));
    home.document("memory.md", b"---\nid: memory\n---\n\xff tea leaves").await;
    let (offered, system) = offers().await;
    assert!(!offered && !system.contains("tea leaves"));
    home.remove("memory.md").await;
    assert!(!offers().await.0);
}

#[tokio::test]
async fn an_answer_on_its_way_is_waited_for_or_left_out() {
    let home = Home::new().await;
    home.dispatcher(Presence::AtWork).await;
    home.exchange("one", "two").await;
    let second = home.say("three").await;
    let output = home.settle(TELEGRAM, &second, "four").await;
    let trigger = home.say("five").await;
    match home.try_build(TELEGRAM, &trigger, PendingReplies::Await).await.unwrap() {
        Built::Pending { output: pending, settled_at } => {
            assert_eq!(pending, output.envelope.id);
            assert_eq!(settled_at, output.envelope.recorded_at);
        }
        other => panic!("{other:?}"),
    }
    let Built::Ready(built) = home.try_build(TELEGRAM, &trigger, PendingReplies::Omit).await.unwrap() else {
        panic!("not ready");
    };
    assert_eq!(said(&built.packet), ["user: one", "assistant: two", "user: three", "user: five"]);
    let omitted = &built.snapshot_decoded.provenance.omitted_replies;
    assert_eq!((omitted[0].turn, omitted[0].reason), (2, ReplyOmission::DeliveryPending));
    home.deliver(&output).await;
    let built = home.build(TELEGRAM, &trigger).await;
    assert_eq!(said(&built.packet)[3], "assistant: four");
}

#[tokio::test]
async fn without_a_dispatcher_at_work_nothing_is_waited_for() {
    let home = Home::new().await;
    let first = home.say("one").await;
    home.settle(TELEGRAM, &first, "two").await;
    let trigger = home.say("three").await;
    let built = home.build(TELEGRAM, &trigger).await;
    assert_eq!(said(&built.packet), ["user: one", "user: three"]);
    assert_eq!(built.snapshot_decoded.provenance.omitted_replies[0].reason, ReplyOmission::NotDelivered);
}

#[tokio::test]
async fn an_answer_to_an_agent_is_never_waited_for() {
    let home = Home::new().await;
    home.dispatcher(Presence::AtWork).await;
    let letter = home.write("t1", "one").await;
    home.settle(AGENT, &letter, "two").await;
    let trigger = home.write("t1", "three").await;
    let built = home.build(AGENT, &trigger).await;
    assert_eq!(said(&built.packet), ["user: one", "assistant: two", "user: three"]);
}

#[tokio::test]
async fn of_several_answers_on_their_way_the_last_settled_is_named() {
    let home = Home::new().await;
    home.dispatcher(Presence::AtWork).await;
    let first = home.say("one").await;
    home.settle(TELEGRAM, &first, "two").await;
    let second = home.say("three").await;
    let newest = home.settle(TELEGRAM, &second, "four").await;
    let query = HistoryQuery {
        source: first.envelope.source.clone(),
        conversation: format!("{CHAT}:0"),
        before_ordinal: 3,
        limit: 10,
        agents: vec![TELEGRAM.to_owned()],
    };
    let history = home.reader().history(query).await.unwrap();
    assert_eq!(pending_reply(&history), Some((newest.envelope.id, newest.envelope.recorded_at)));
    assert_eq!(pending_reply(&[]), None);
}

#[tokio::test]
async fn a_context_over_its_bound_is_blocked() {
    let home = Home::with(|text| text.replace("maxCharacters: 120000", "maxCharacters: 70")).await;
    let short = home.say("hi").await;
    let built = home.build(TELEGRAM, &short).await;
    assert!(built.snapshot_decoded.provenance.characters <= 70);
    let long = home.say(&"x".repeat(60)).await;
    let built = home.try_build(TELEGRAM, &long, PendingReplies::Await).await.unwrap();
    assert!(matches!(built, Built::Blocked(BlockedReason::ContextTooLarge)));
}

#[tokio::test]
async fn a_trigger_that_is_not_the_declarations_is_blocked() {
    let home = Home::new().await;
    let letter = home.write("t1", "hello").await;
    let built = home.try_build(TELEGRAM, &letter, PendingReplies::Await).await.unwrap();
    assert!(matches!(built, Built::Blocked(BlockedReason::Policy)));
    let mut forged = letter.clone();
    forged.envelope.actor = thought_contract::event::Actor::new("agent:bo");
    let built = home.try_build(AGENT, &forged, PendingReplies::Await).await.unwrap();
    assert!(matches!(built, Built::Blocked(BlockedReason::RouteRefused)));
    // Neither looked at a document.
    assert_eq!(home.looks.count.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_newest_turns_fit_and_the_rest_is_told() {
    let home = Home::with(|text| text.replace("maxEvents: 64", "maxEvents: 3")).await;
    for number in 0..3 {
        home.exchange(&format!("q{number}"), &format!("a{number}")).await;
    }
    let trigger = home.say("now").await;
    let built = home.build(TELEGRAM, &trigger).await;
    assert_eq!(said(&built.packet), ["user: q2", "assistant: a2", "user: now"]);
    let omitted = built.snapshot_decoded.provenance.omitted_turns.unwrap();
    assert_eq!((omitted.count, omitted.first_ordinal, omitted.last_ordinal), (2, 1, 2));
    assert_eq!(omitted.newest.len(), 2);
    let newest = home.event(&omitted.newest[0]).await;
    assert_eq!(newest.payload::<p::TelegramMessage>().unwrap().text.unwrap(), "q1");
}

#[tokio::test]
async fn where_messages_have_no_answer_as_many_of_them_fit() {
    // Of answered turns two fit, and a third shows that no more do; of bare messages five.
    let home = Home::with(|text| text.replace("maxEvents: 64", "maxEvents: 6")).await;
    for number in 0..3 {
        home.say(&format!("bare {number}")).await;
    }
    let trigger = home.say("now").await;
    let built = home.build(TELEGRAM, &trigger).await;
    assert_eq!(said(&built.packet), ["user: bare 0", "user: bare 1", "user: bare 2", "user: now"]);
    assert_eq!(built.snapshot_decoded.provenance.omitted_turns, None);
    home.say("one more").await;
    home.say("and one").await;
    home.say("and the last").await;
    let trigger = home.say("again").await;
    let built = home.build(TELEGRAM, &trigger).await;
    let newest =
        ["user: bare 2", "user: now", "user: one more", "user: and one", "user: and the last", "user: again"];
    assert_eq!(said(&built.packet), newest);
    assert_eq!(built.snapshot_decoded.provenance.omitted_turns.unwrap().count, 2);
    for number in 0..3 {
        home.exchange(&format!("q{number}"), &format!("a{number}")).await;
    }
    let trigger = home.say("at last").await;
    let built = home.build(TELEGRAM, &trigger).await;
    assert_eq!(
        said(&built.packet),
        ["user: q1", "assistant: a1", "user: q2", "assistant: a2", "user: at last"]
    );
    // Bare messages among them make room for one more event, which no whole turn fits into.
    home.say("bare again").await;
    let trigger = home.say("the end").await;
    let built = home.build(TELEGRAM, &trigger).await;
    let shown = ["user: q2", "assistant: a2", "user: at last", "user: bare again", "user: the end"];
    assert_eq!(said(&built.packet), shown);
}

#[tokio::test]
async fn with_room_for_one_message_there_is_no_history() {
    let home = Home::with(|text| text.replace("maxEvents: 64", "maxEvents: 1")).await;
    home.exchange("one", "two").await;
    let trigger = home.say("three").await;
    let built = home.build(TELEGRAM, &trigger).await;
    assert_eq!(said(&built.packet), ["user: three"]);
    assert_eq!(built.snapshot_decoded.provenance.omitted_turns.unwrap().count, 1);
}

#[tokio::test]
async fn a_longer_log_makes_a_build_read_no_more_rows() {
    let home = Home::with(|text| text.replace("maxEvents: 64", "maxEvents: 5")).await;
    let mut rows = Vec::new();
    for _ in 0..2 {
        // More than 64 older turns both times, so that the list of omitted ids is full.
        for number in 0..70 {
            home.say(&format!("old {number}")).await;
        }
        home.exchange("one", "two").await;
        home.exchange("three", "four").await;
        let trigger = home.say("five").await;
        let before = home.reader().counters().rows_read;
        home.build(TELEGRAM, &trigger).await;
        rows.push(home.reader().counters().rows_read - before);
    }
    assert_eq!(rows[0], rows[1]);
}

#[tokio::test]
async fn the_images_of_the_current_message_are_sent_and_earlier_ones_are_named() {
    let home = Home::new().await;
    let bytes = b"\x89PNG".to_vec();
    let image = || p::Image {
        blob_sha256: Sha256Hex::of(b"\x89PNG"),
        media_type: "image/png".to_owned(),
        byte_count: 4,
        width: 1,
        height: 1,
    };
    home.say_in(CHAT, "earlier", vec![image()]).await;
    let trigger = home.say_in(CHAT, "look", vec![image()]).await;
    let missing = home.try_build(TELEGRAM, &trigger, PendingReplies::Await).await.unwrap_err();
    assert!(matches!(missing, ContextError::Images(_)));
    home.blobs.0.lock().unwrap().push(bytes.clone());
    let (run, built) = home.start(TELEGRAM, &trigger).await;
    assert_eq!(said(&built.packet), ["user: [image]\nearlier", "user: look"]);
    let PacketMessage::User { images, .. } = &built.packet.messages[1] else { panic!("no user") };
    assert_eq!((images.len(), images[0].data_base64.as_str()), (1, "iVBORw=="));
    let kept = Blobs::default();
    kept.0.lock().unwrap().push(bytes);
    let (_, packet) = rebuild(&home.reader(), &kept, &run).await.unwrap();
    assert_eq!(packet.encode().unwrap(), built.packet_bytes.into_inner());
    let gone = rebuild(&home.reader(), &NoImages, &run).await.unwrap_err();
    assert!(matches!(gone, ContextError::Images(_)));
}

#[tokio::test]
async fn documents_that_cannot_be_looked_at_are_an_error_and_nothing_is_built() {
    let home = Home::new().await;
    let trigger = home.say("hello").await;
    *home.looks.fail.lock().unwrap() = true;
    let failed = home.try_build(TELEGRAM, &trigger, PendingReplies::Await).await.unwrap_err();
    assert!(matches!(failed, ContextError::Documents(_)));
}

#[tokio::test]
async fn a_rebuild_tells_what_is_missing() {
    let home = Home::new().await;
    let absent = run_id(TELEGRAM, 1, &EventId::of("x", &[]), 0);
    let failed = rebuild(&home.reader(), &NoImages, &absent).await.unwrap_err();
    assert!(matches!(failed, ContextError::RunMissing { .. }));
    let trigger = home.say("hello").await;
    let (first, _) = home.start(TELEGRAM, &trigger).await;
    assert!(rebuild(&home.reader(), &NoImages, &first).await.is_ok());
    // A run that is held has none.
    let held = home.say("held").await;
    let run = home.hold(&held).await;
    let failed = rebuild(&home.reader(), &NoImages, &run).await.unwrap_err();
    assert!(matches!(failed, ContextError::SnapshotMissing { .. }));
}

#[tokio::test]
async fn the_snapshot_of_another_run_is_refused() {
    let home = Home::new().await;
    let first = home.say("one").await;
    let built = home.build(TELEGRAM, &first).await;
    let second = home.say("two").await;
    // The second run is stored with the first one's context.
    let run = home.start_with(TELEGRAM, &second, built.snapshot.clone()).await;
    let failed = rebuild(&home.reader(), &NoImages, &run).await.unwrap_err();
    assert!(matches!(failed, ContextError::SnapshotForeign { .. }));
    // Damaged bytes are told apart.
    let third = home.say("three").await;
    let damaged = NewSnapshot { bytes: Sensitive::new(b"damaged".to_vec()), ..built.snapshot };
    let run = home.start_with(TELEGRAM, &third, damaged).await;
    let failed = rebuild(&home.reader(), &NoImages, &run).await.unwrap_err();
    assert!(matches!(failed, ContextError::Snapshot(_)));
}
