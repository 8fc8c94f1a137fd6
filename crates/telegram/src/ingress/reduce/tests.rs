use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::admit::{Policy, admit};
use crate::ids::UserId;
use crate::ingress::glimpsed_chat;
use crate::wire::{BotIdentity, ChatKind, parse_update};

const OTHER_KINDS: [&str; 19] = [
    "animation",
    "audio",
    "checklist",
    "contact",
    "dice",
    "document",
    "game",
    "giveaway",
    "invoice",
    "location",
    "paid_media",
    "poll",
    "rich_message",
    "sticker",
    "story",
    "venue",
    "video",
    "video_note",
    "voice",
];

/// Members that hold what somebody else said or is called, of whatever form.
const FOREIGN: [&str; 24] = [
    "quote",
    "external_reply",
    "reply_to_story",
    "pinned_message",
    "forward_origin",
    "forward_from",
    "forward_from_chat",
    "forward_sender_name",
    "author_signature",
    "entities",
    "caption_entities",
    "new_chat_title",
    "new_chat_members",
    "left_chat_member",
    "left_chat_participant",
    "forum_topic_created",
    "checklist_tasks_done",
    "poll_option_added",
    "suggested_post_info",
    "sender_business_bot",
    "link_preview_options",
    "reply_markup",
    "chat_background_set",
    "member_of_tomorrow",
];

fn policies() -> [Policy; 3] {
    let of = |chats: &[i64], users: &[i64], name: &str| Policy {
        allowed_chats: chats.iter().copied().map(ChatId).collect(),
        allowed_users: users.iter().copied().map(UserId).collect(),
        bot: BotIdentity { id: UserId(1), username: name.to_owned() },
    };
    [of(&[4242, -7], &[4242], "stream_bot"), of(&[4242], &[], "other_bot"), of(&[], &[], "stream_bot")]
}

fn message(fields: &Value) -> Value {
    let mut message = json!({"message_id": 7, "date": 1_796_000_000, "chat": {"id": -7, "type": "supergroup"},
        "from": {"id": 4242, "is_bot": false}});
    for (name, value) in fields.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
}

fn update(fields: &Value) -> Value {
    json!({"update_id": 5, "message": message(fields)})
}

/// Reduces, and makes sure that it means the same under every policy and cannot be reduced further.
fn reduce(update: &Value) -> String {
    let original = parse_update(update.to_string().as_bytes()).unwrap();
    let bytes = reduced(&original).unwrap();
    let again = parse_update(&bytes).unwrap();
    assert_eq!(again.update_id, original.update_id);
    for policy in policies() {
        assert_eq!(admit(&again, &policy), admit(&original, &policy), "{update}");
    }
    assert_eq!(reduced(&again).unwrap(), bytes);
    String::from_utf8(bytes).unwrap()
}

#[test]
fn no_word_and_no_name_of_anybody_else_survives() {
    let deep = json!({"text": "canary", "from": {"id": 9, "first_name": "canary", "username": "canary"},
        "chat": {"id": 9, "title": "canary"}, "list": [{"caption": "canary"}]});
    let mut fields = json!({"text": "hello", "is_topic_message": true, "message_thread_id": 3,
        "chat": {"id": -7, "type": "supergroup", "title": "canary", "username": "canary"},
        "from": {"id": 4242, "is_bot": false, "first_name": "canary", "last_name": "canary", "username": "canary"},
        "reply_to_message": {"message_id": 2, "text": "canary", "quote": deep}});
    for name in FOREIGN {
        fields[name] = deep.clone();
    }
    let mut update = update(&fields);
    update["edited_message"] = message(&json!({"text": "canary"}));
    update["channel_post"] = deep.clone();
    update["chat_member"] = deep;
    let stored = reduce(&update);
    assert!(!stored.contains("canary"), "{stored}");
    let wanted = json!({"update_id": 5, "message": {"message_id": 7, "date": 1_796_000_000, "text": "hello",
        "chat": {"id": -7, "type": "supergroup"}, "from": {"id": 4242, "is_bot": false},
        "message_thread_id": 3, "is_topic_message": true, "reply_to_message": {"message_id": 2}}});
    assert_eq!(serde_json::from_str::<Value>(&stored).unwrap(), wanted);
}

#[test]
fn content_that_is_not_read_is_kept_as_its_name_alone() {
    for kind in OTHER_KINDS {
        let mut fields = json!({"caption": "canary", "text": "canary",
            "photo": [{"file_id": "canary", "width": 1, "height": 1}]});
        fields[kind] = json!({"title": "canary", "phone_number": "canary", "question": "canary"});
        let stored = reduce(&update(&fields));
        assert!(!stored.contains("canary") && stored.contains(kind), "{stored}");
        // Of an album it is the caption of the whole.
        fields["media_group_id"] = json!("g");
        fields["caption"] = json!("about all");
        let stored = reduce(&update(&fields));
        assert!(!stored.contains("canary") && stored.contains("about all"), "{stored}");
    }
    let both = reduce(&update(&json!({"venue": {"location": {}}, "location": {}})));
    assert!(both.contains(r#""venue":{}"#));
    let moved = reduce(&update(&json!({"migrate_to_chat_id": -1007, "text": "canary"})));
    assert!(moved.contains("-1007") && !moved.contains("canary"));
    let edited = json!({"update_id": 5, "edited_message": message(&json!({"text": "canary"}))});
    assert!(!reduce(&edited).contains("canary"));
}

#[test]
fn what_admission_reads_is_all_there() {
    let long = "x".repeat(OPAQUE_ID_BYTES_MAX + 1);
    let sizes = json!([{"file_id": "a", "width": 1, "height": 2, "file_size": 3, "file_unique_id": "canary"},
        {"file_id": long, "width": 9, "height": 9}, {"file_id": "b", "width": 5, "height": 5}]);
    for fields in [
        json!({"text": "hello"}),
        json!({"text": "/help@stream_bot"}),
        json!({"text": "/correct better", "reply_to_message": {"message_id": 3}}),
        json!({"text": " ", "caption": "x"}),
        json!({"text": "a\u{0}b"}),
        json!({"text": "x".repeat(100_000)}),
        json!({"caption": "look", "photo": sizes, "media_group_id": "77"}),
        json!({"photo": sizes}),
        json!({"photo": [{"file_id": long, "width": 1, "height": 1}]}),
        json!({"photo": [{"file_id": "a", "width": 1, "height": 1, "file_size": 9_000_000}], "caption": "x"}),
        json!({"text": "x", "media_group_id": long}),
        json!({"text": "x", "message_thread_id": 40, "reply_to_message": {"message_id": 40}}),
        json!({"text": "x", "sender_chat": {"id": -7, "type": "supergroup"}}),
        json!({"text": "x", "via_bot": {"id": 5}}),
        json!({"text": "x", "from": {"id": 4242, "is_bot": true}}),
        json!({"text": "x", "from": null}),
        json!({"text": "x", "date": null}),
        json!({"new_chat_title": "x"}),
        json!({"text": "x", "chat": {"id": 4242, "type": "private"}}),
        json!({"text": "x", "chat": {"id": -7, "type": "channel"}}),
        json!({"text": "x", "chat": {"id": -7, "type": "kind-of-tomorrow"}}),
    ] {
        assert!(!reduce(&update(&fields)).contains("canary"));
    }
    reduce(&json!({"update_id": 5, "poll": {"question": "x"}}));
}

#[test]
fn of_what_cannot_be_read_only_the_numbers_are_kept_and_it_stays_unreadable() {
    let in_chat = Chat { id: ChatId(4242), kind: ChatKind::Private };
    for (message_id, kept) in [(json!(7), Some(7)), (json!("canary"), None), (Value::Null, None)] {
        let mut update = update(&json!({"text": {"canary": 1}}));
        update["message"]["message_id"] = message_id;
        let stored = stand_in(UpdateId(5), in_chat, update.to_string().as_bytes()).unwrap();
        assert!(parse_update(&stored).is_err());
        assert_eq!(glimpsed_chat(&stored), Some(ChatId(4242)));
        let mark = kept.map_or_else(|| json!({}), |id| json!({"message_id": id}));
        let wanted = json!({"update_id": 5,
            "message": {"chat": {"id": 4242, "type": "private"}, "unreadable": mark}});
        assert_eq!(serde_json::from_slice::<Value>(&stored).unwrap(), wanted);
    }
    assert!(stand_in(UpdateId(5), in_chat, b"{\"canary").is_ok());
}

fn words() -> impl Strategy<Value = Value> {
    prop_oneof![
        ".{0,40}".prop_map(|text| json!(text)),
        "/(help|focus|correct|start)(@stream_bot|@other_bot)?( [a-z]{0,5})?".prop_map(|text| json!(text)),
        Just(json!(null)),
    ]
}

fn photos() -> impl Strategy<Value = Value> {
    let size = ("[a-z]{0,3}", any::<u32>(), any::<u32>(), prop::option::of(0_u64..9_000_000)).prop_map(
        |(file_id, width, height, bytes)| {
            json!({"file_id": file_id, "width": width, "height": height, "file_size": bytes})
        },
    );
    prop::collection::vec(size, 0..4).prop_map(Value::from)
}

/// Each of the members, or not, and foreign ones in any number.
fn messages() -> impl Strategy<Value = Value> {
    let place = (
        prop_oneof![Just(4242_i64), Just(-7), any::<i64>()],
        prop_oneof![Just("private"), Just("group"), Just("supergroup"), Just("channel"), Just("new")],
        prop_oneof![Just(json!(null)), Just(json!({"id": 4242})), Just(json!({"id": 8, "is_bot": true}))],
    );
    let optional = prop::collection::btree_map(
        prop_oneof![
            prop::sample::select(OTHER_KINDS.as_slice()),
            prop::sample::select(FOREIGN.as_slice()),
            Just("via_bot")
        ],
        Just(json!({"text": "stranger-canary", "id": 1})),
        0..4,
    );
    let numbers = (any::<i64>(), any::<bool>(), prop::option::of(0_i64..4), prop::option::of(0_i64..4));
    let rare = (prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    (place, optional, numbers, words(), words(), photos(), rare).prop_map(
        |((chat, kind, from), optional, (id, topic, thread, reply), text, caption, photo, (moved, as_chat))| {
            let mut fields = json!({"message_id": id, "chat": {"id": chat, "type": kind, "title": "stranger-canary"},
                "from": from, "is_topic_message": topic, "message_thread_id": thread, "text": text,
                "caption": caption, "photo": photo});
            if let Some(reply) = reply {
                fields["reply_to_message"] = json!({"message_id": reply, "text": "stranger-canary"});
            }
            if moved {
                fields["migrate_to_chat_id"] = json!(-1007);
            }
            if as_chat {
                fields["sender_chat"] = json!({"id": -7, "title": "stranger-canary"});
            }
            for (name, value) in optional {
                fields[name] = value;
            }
            fields
        },
    )
}

proptest! {
    #[test]
    fn a_reduced_update_means_the_same_and_holds_nothing_of_strangers(fields in messages(), edited in any::<bool>()) {
        let update = if edited {
            json!({"update_id": 5, "edited_message": message(&fields)})
        } else {
            update(&fields)
        };
        prop_assert!(!reduce(&update).contains("stranger-canary"));
    }
}
