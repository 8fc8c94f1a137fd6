use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

const OWNER: i64 = 4242;
const GROUP: i64 = -100_777;

fn policy() -> Policy {
    Policy {
        allowed_chats: BTreeSet::from([ChatId(OWNER), ChatId(GROUP), ChatId(-5), ChatId(-100_900)]),
        allowed_users: BTreeSet::from([UserId(OWNER)]),
        bot: BotIdentity { id: UserId(99), username: String::from("stream_bot") },
    }
}

/// A private message of the owner, with `fields` laid over it.
fn message(fields: Value) -> Value {
    let mut message = json!({
        "message_id": 7,
        "date": 1_700_000_000,
        "chat": {"id": OWNER, "type": "private", "first_name": "Canary"},
        "from": {"id": OWNER, "is_bot": false, "first_name": "Canary", "language_code": "en"},
    });
    for (key, value) in fields.as_object().unwrap() {
        message[key] = value.clone();
    }
    message
}

fn decide(update: Value) -> Admission {
    let update: Update = serde_json::from_value(update).unwrap();
    admit(&update, &policy())
}

fn decide_message(fields: Value) -> Admission {
    decide(json!({"update_id": 1, "message": message(fields)}))
}

fn group() -> Value {
    json!({"id": GROUP, "type": "supergroup", "title": "Canary", "is_forum": true})
}

#[track_caller]
fn admitted(fields: Value) -> NewMessage {
    match decide_message(fields) {
        Admission::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_refused(fields: Value, wanted: Refusal) {
    match decide_message(fields) {
        Admission::Refused { reason, .. } => assert_eq!(reason, wanted),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_private_message_becomes_a_turn() {
    let seen = admitted(json!({"text": "hello"}));
    assert_eq!(seen.text, Some(Sensitive::new(String::from("hello"))));
    let origin = Origin {
        chat_id: ChatId(OWNER),
        thread_id: None,
        message_id: MessageId(7),
        user_id: UserId(OWNER),
        bot_id: UserId(99),
        sent_at_s: Some(1_700_000_000),
        reply_to_message_id: None,
    };
    assert_eq!(seen.origin, origin);
    assert!(seen.photos.is_empty() && seen.media_group_id.is_none());
}

#[test]
fn only_admitted_chats_and_people_are_heard() {
    let stranger = json!({"id": 666, "is_bot": false});
    assert_refused(
        json!({"text": "x", "chat": {"id": 666, "type": "private"}, "from": stranger}),
        Refusal::ChatNotAllowed,
    );
    assert_refused(json!({"text": "x", "from": stranger}), Refusal::UserNotAllowed);
    assert_refused(json!({"text": "x", "chat": group(), "from": stranger}), Refusal::UserNotAllowed);
    assert_refused(json!({"text": "x", "chat": {"id": -1, "type": "group"}}), Refusal::ChatNotAllowed);
    assert_refused(json!({"text": "x", "from": null}), Refusal::NoSender);
    assert_refused(json!({"text": "x", "from": {"id": OWNER, "is_bot": true}}), Refusal::Bot);
    assert_refused(json!({"text": "x", "via_bot": {"id": 5, "is_bot": true}}), Refusal::Bot);
    assert_refused(
        json!({"text": "x", "chat": group(), "sender_chat": {"id": GROUP, "type": "supergroup"}}),
        Refusal::SentAsChat,
    );
    assert_refused(
        json!({"text": "x", "chat": group(), "from": {"id": 1_087_968_824, "is_bot": true}}),
        Refusal::SentAsChat,
    );
    assert_refused(json!({"text": "x", "chat": {"id": -100_900, "type": "channel"}}), Refusal::Channel);
    assert_refused(json!({"text": "x", "chat": {"id": -5, "type": "something-new"}}), Refusal::Channel);
    assert!(matches!(decide_message(json!({"text": "x", "chat": group()})), Admission::Message(_)));
}

#[test]
fn a_private_chat_needs_no_allowed_users() {
    let update =
        serde_json::from_value(json!({"update_id": 1, "message": message(json!({"text": "x"}))})).unwrap();
    let policy = Policy { allowed_users: BTreeSet::new(), ..policy() };
    assert!(matches!(admit(&update, &policy), Admission::Message(_)));
}

#[test]
fn nothing_of_a_stranger_is_kept_but_id_and_kind() {
    let seen = decide_message(json!({
        "text": "canary", "chat": {"id": 666, "type": "private", "first_name": "canary"}, "from": {"id": 666, "is_bot": false},
    }));
    let wanted = Admission::Refused {
        chat_id: ChatId(666),
        chat_kind: ChatKind::Private,
        reason: Refusal::ChatNotAllowed,
    };
    assert_eq!(seen, wanted);
}

#[test]
fn an_edited_message_never_starts_a_turn() {
    let edited =
        json!({"update_id": 2, "edited_message": message(json!({"text": "changed", "edit_date": 3}))});
    assert_eq!(decide(edited), Admission::Edited);
    let command = json!({"update_id": 2, "edited_message": message(json!({"text": "/help"}))});
    assert_eq!(decide(command), Admission::Edited);
    let stranger = json!({"update_id": 2, "edited_message": message(json!({"text": "x", "chat": {"id": 1, "type": "private"}}))});
    assert!(matches!(decide(stranger), Admission::Refused { reason: Refusal::ChatNotAllowed, .. }));
}

#[test]
fn other_updates_and_service_messages_are_ignored() {
    assert_eq!(decide(json!({"update_id": 3, "callback_query": {"id": "1"}})), Admission::Ignored);
    assert_eq!(decide(json!({"update_id": 3, "kind_of_tomorrow": [1, {"a": null}]})), Admission::Ignored);
    assert_eq!(decide_message(json!({"new_chat_members": [{"id": 1}]})), Admission::Ignored);
    assert_eq!(decide_message(json!({"pinned_message": {"message_id": 1}})), Admission::Ignored);
    assert_eq!(decide_message(json!({"text": " \n "})), Admission::Ignored);
    assert_eq!(decide_message(json!({})), Admission::Ignored);
}

#[test]
fn commands_are_not_turns_and_a_described_focus_is_one() {
    let command =
        |text: &str| match decide_message(json!({"text": text, "reply_to_message": {"message_id": 3}})) {
            Admission::Command(command) => {
                Some((command.command, command.argument.map(Sensitive::into_inner)))
            }
            _ => None,
        };
    assert_eq!(command("/start"), Some((CommandName::Start, None)));
    assert_eq!(command("/help@STREAM_BOT"), Some((CommandName::Help, None)));
    assert_eq!(command("/focus"), Some((CommandName::Focus, None)));
    assert_eq!(
        command("/correct better words"),
        Some((CommandName::Correct, Some(String::from("better words"))))
    );
    for text in ["/focus old bicycles", "/help@other_bot", "/unknown", "say /help"] {
        assert_eq!(command(text), None);
        assert_eq!(admitted(json!({"text": text})).text.unwrap().expose(), text);
    }
    let caption = admitted(json!({"caption": "/help", "photo": [{"file_id": "a", "width": 1, "height": 1}]}));
    assert_eq!(caption.text.unwrap().expose(), "/help");
}

#[test]
fn a_correction_names_the_message_it_replies_to() {
    let seen = decide_message(
        json!({"text": "/correct x", "reply_to_message": {"message_id": 3, "text": "canary"}}),
    );
    let Admission::Command(command) = seen else { panic!("{seen:?}") };
    assert_eq!(command.origin.reply_to_message_id, Some(MessageId(3)));
}

#[test]
fn a_thread_counts_only_where_it_is_a_topic() {
    let base = json!({"text": "x", "chat": group(), "message_thread_id": 40, "reply_to_message": {"message_id": 40}});
    let seen = admitted(base.clone());
    assert_eq!((seen.origin.thread_id, seen.origin.reply_to_message_id), (None, Some(MessageId(40))));
    let mut topic = base;
    topic["is_topic_message"] = json!(true);
    let seen = admitted(topic.clone());
    assert_eq!((seen.origin.thread_id, seen.origin.reply_to_message_id), (Some(ThreadId(40)), None));
    topic["reply_to_message"] = json!({"message_id": 41});
    assert_eq!(admitted(topic).origin.reply_to_message_id, Some(MessageId(41)));
}

#[test]
fn of_a_photo_the_largest_size_within_the_bound_is_taken() {
    let photo = json!([
        {"file_id": "small", "file_unique_id": "s", "width": 90, "height": 90, "file_size": 1_000},
        {"file_id": "large", "file_unique_id": "l", "width": 1_280, "height": 1_280, "file_size": 5 * 1024 * 1024},
        {"file_id": "huge", "file_unique_id": "h", "width": 4_000, "height": 4_000, "file_size": 5 * 1024 * 1024 + 1},
    ]);
    let seen = admitted(json!({"photo": photo, "caption": "look", "media_group_id": "77"}));
    assert_eq!(seen.photos, [PhotoRef { file_id: String::from("large"), width: 1_280, height: 1_280 }]);
    assert_eq!((seen.text.unwrap().expose().as_str(), seen.media_group_id.as_deref()), ("look", Some("77")));
    let bare = admitted(json!({"photo": [{"file_id": "a", "width": 1, "height": 1}]}));
    assert_eq!((bare.text, bare.photos.len()), (None, 1));
    let too_large =
        json!({"photo": [{"file_id": "a", "width": 1, "height": 1, "file_size": 9_000_000}], "caption": "x"});
    assert!(matches!(decide_message(too_large), Admission::Unsupported { kind: "photo", .. }));
}

#[test]
fn other_kinds_are_told_by_name() {
    let kinds = [
        ("sticker", "sticker"),
        ("voice", "voice"),
        ("video", "video"),
        ("video_note", "video-note"),
        ("document", "document"),
        ("location", "location"),
        ("contact", "contact"),
        ("poll", "poll"),
        ("audio", "audio"),
        ("dice", "dice"),
        ("story", "story"),
    ];
    for (field, wanted) in kinds {
        let mut fields = json!({"caption": "canary"});
        fields[field] = json!({"file_id": "x", "deep": [{"a": 1}]});
        match decide_message(fields) {
            Admission::Unsupported { kind, origin, .. } => {
                assert_eq!((kind, origin.message_id), (wanted, MessageId(7)));
            }
            other => panic!("{field}: {other:?}"),
        }
    }
    let animation = decide_message(json!({"animation": {}, "document": {}}));
    assert!(matches!(animation, Admission::Unsupported { kind: "animation", .. }));
}

#[test]
fn text_that_no_event_may_hold_is_not_read() {
    assert!(matches!(
        decide_message(json!({"text": "a\u{0}b"})),
        Admission::Unsupported { kind: "text", .. }
    ));
    let long = "x".repeat(TELEGRAM_TEXT_CHARACTERS_MAX + 1);
    assert!(matches!(decide_message(json!({"text": long})), Admission::Unsupported { kind: "text", .. }));
    let fits = "🙂".repeat(TELEGRAM_TEXT_CHARACTERS_MAX);
    assert!(matches!(decide_message(json!({"text": fits})), Admission::Message(_)));
}

#[test]
fn a_migration_admits_nobody() {
    let seen = decide_message(json!({"chat": {"id": -5, "type": "group"}, "migrate_to_chat_id": -100_123}));
    assert_eq!(seen, Admission::Migrated { chat_id: ChatId(-5), to: ChatId(-100_123) });
    let there = json!({"chat": {"id": -100_123, "type": "supergroup"}, "migrate_from_chat_id": -5});
    assert_refused(there, Refusal::ChatNotAllowed);
}

#[test]
fn debug_of_an_admission_shows_no_words() {
    let seen = decide_message(json!({
        "caption": "canary", "photo": [{"file_id": "canary-file", "width": 1, "height": 1}],
    }));
    assert!(!format!("{seen:?}").contains("canary"));
    let raw = message(json!({"text": "canary"}));
    let parsed: Message = serde_json::from_value(raw).unwrap();
    assert!(!format!("{parsed:?}").contains("canary"));
}
