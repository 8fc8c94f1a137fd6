//! Clients of others talk to the Bot API of the fakes: what the other tests believe of Telegram is what these believe.
//!
//! frankenstein always; python-telegram-bot where `THOUGHT_TEST_TELEGRAM_PYTHON` (or `python3`) has it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::process::Stdio;
use std::time::Duration;

use frankenstein::client_ureq::Bot;
use frankenstein::methods::{
    DeleteMyCommandsParams, DeleteWebhookParams, GetFileParams, GetMyCommandsParams, GetUpdatesParams,
    SendChatActionParams, SendMessageParams, SetMyCommandsParams, SetWebhookParams,
};
use frankenstein::response::ErrorResponse;
use frankenstein::types::{
    AllowedUpdate, BotCommand, BotCommandScope, BotCommandScopeChat, ChatAction, ChatType, Message,
    MessageEntity, MessageEntityType, ReplyParameters,
};
use frankenstein::updates::{Update, UpdateContent};
use frankenstein::{Error, TelegramApi};
use thought_fakes::{
    BotApi, BotConfig, ChatKind, ChatSpec, Failure, MessageSpec, PhotoSpec, Pushed, UserSpec,
};
use tokio::process::Command;

const TOKEN: &str = "123456:test-token";
const SOON: Duration = Duration::from_secs(20);
const SUPERGROUP: i64 = -1_001_234_567_890;

async fn start() -> BotApi {
    let bot = BotApi::start(BotConfig::new(TOKEN)).await.unwrap();
    bot.add_chat(ChatSpec::private(7));
    bot
}

/// No proxy of the machine stands between, and a server that hangs fails a test early.
fn client(bot: &BotApi, token: &str) -> Bot {
    let config =
        ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(SOON)).proxy(None);
    let agent = ureq::Agent::new_with_config(config.build());
    Bot::builder().api_url(format!("{}/bot{token}", bot.base_url())).request_agent(agent).build()
}

fn poll(client: &Bot, params: &GetUpdatesParams) -> Vec<u32> {
    client.get_updates(params).unwrap().result.iter().map(|update| update.update_id).collect()
}

fn updates(client: &Bot, offset: i64) -> Vec<Update> {
    let params = GetUpdatesParams::builder().offset(offset).limit(100).timeout(0).build();
    client.get_updates(&params).unwrap().result
}

fn message(update: &Update) -> &Message {
    match &update.content {
        UpdateContent::Message(message) | UpdateContent::EditedMessage(message) => message,
        other => panic!("a message was expected, not {other:?}"),
    }
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> ErrorResponse {
    match answer {
        Err(Error::Api(refusal)) => refusal,
        other => panic!("a refusal was expected, not {other:?}"),
    }
}

fn entity(kind: MessageEntityType, offset: u16, length: u16) -> MessageEntity {
    MessageEntity::builder().type_field(kind).offset(offset).length(length).build()
}

/// Seven updates, each of another shape. Returns the first one's.
fn push_every_kind(bot: &BotApi) -> Pushed {
    let (chat, person) = (ChatSpec::private(7), UserSpec::person(7));
    let asked = bot.push(&MessageSpec::text(chat.clone(), person.clone(), "/focus 🙂"));
    bot.push_edit(7, asked.message_id, "/focus on the ferry").unwrap();
    bot.push(&MessageSpec::text(chat.clone(), person.clone(), "and?").replying_to(asked.message_id));
    let photos =
        vec![(PhotoSpec::single(vec![1; 10]), Some("a caption")), (PhotoSpec::single(vec![2; 20]), None)];
    bot.push_album(&chat, &person, "album-1", photos);
    let forum = ChatSpec::of(ChatKind::Forum, SUPERGROUP);
    bot.push(&MessageSpec::text(forum.clone(), person, "in a topic").in_topic(9));
    bot.push(&MessageSpec::text(forum, UserSpec::anonymous_admin(), "in General"));
    asked
}

/// frankenstein has no call for it, its agent has.
fn download(client: &Bot, bot: &BotApi, path: &str) -> (u16, Vec<u8>) {
    let url = format!("{}/file/bot{TOKEN}/{path}", bot.base_url());
    let mut answer = client.request_agent.get(&url).call().unwrap();
    (answer.status().as_u16(), answer.body_mut().read_to_vec().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn frankenstein_reads_who_the_bot_is_and_every_kind_of_message() {
    let bot = start().await;
    let client = client(&bot, TOKEN);
    let me = client.get_me().unwrap().result;
    assert_eq!((me.id, me.is_bot, me.username.as_deref()), (123_456, true, Some("thought_stream_bot")));
    assert_eq!((me.can_join_groups, me.has_main_web_app), (Some(true), Some(false)));

    let asked = push_every_kind(&bot);
    let all = updates(&client, 0);
    let [text, edited, reply, photo, second, topic, general] = &all[..] else {
        panic!("7 updates were pushed, {} came", all.len())
    };
    assert_eq!(i64::from(text.update_id), asked.update_id);
    let text = message(text);
    assert_eq!((text.chat.id, text.chat.type_field), (7, ChatType::Private));
    assert_eq!((text.text.as_deref(), text.from.as_ref().unwrap().id), (Some("/focus 🙂"), 7));
    assert_eq!(text.entities, Some(vec![entity(MessageEntityType::BotCommand, 0, 6)]));
    assert!(matches!(edited.content, UpdateContent::EditedMessage(_)));
    let edited = message(edited);
    assert_eq!((edited.message_id, edited.text.as_deref()), (text.message_id, Some("/focus on the ferry")));
    assert!(edited.edit_date > Some(edited.date));
    let answered = message(reply).reply_to_message.as_ref().unwrap();
    assert_eq!(answered.message_id, text.message_id);

    let (photo, second) = (message(photo), message(second));
    assert_eq!((photo.caption.as_deref(), second.caption.as_deref()), (Some("a caption"), None));
    assert!([photo, second].iter().all(|one| one.media_group_id.as_deref() == Some("album-1")));
    let size = &second.photo.as_ref().unwrap()[0];
    assert_eq!((size.width, size.height, size.file_size), (1280, 960, Some(20)));
    let file = client.get_file(&GetFileParams::builder().file_id(&size.file_id).build()).unwrap().result;
    assert_eq!((&file.file_unique_id, file.file_size), (&size.file_unique_id, Some(20)));
    assert_eq!(download(&client, &bot, &file.file_path.unwrap()), (200, vec![2; 20]));
    assert_eq!(download(&client, &bot, "photos/no-such-file.jpg").0, 404);
    let unknown = GetFileParams::builder().file_id("no-such-file").build();
    assert_eq!(refusal(client.get_file(&unknown)).error_code, 400);

    let (topic, general) = (message(topic), message(general));
    assert_eq!((topic.chat.id, topic.chat.is_forum), (SUPERGROUP, Some(true)));
    assert_eq!((topic.message_thread_id, topic.is_topic_message), (Some(9), Some(true)));
    assert_eq!((general.message_thread_id, general.is_topic_message), (None, None));
    assert!(general.from.as_ref().unwrap().is_bot);
}

#[tokio::test(flavor = "multi_thread")]
async fn frankenstein_acknowledges_by_the_offset_alone() {
    let bot = start().await;
    let client = client(&bot, TOKEN);
    // The highest ids that there are.
    bot.set_next_update_id(i32::MAX - 2);
    let ids: Vec<u32> = ["one", "two", "three"]
        .map(|text| bot.push_message(ChatSpec::private(7), UserSpec::person(7), text))
        .map(|id| u32::try_from(id).unwrap())
        .to_vec();
    assert_eq!(poll(&client, &GetUpdatesParams::builder().limit(2).build()), ids[..2]);
    assert_eq!(poll(&client, &GetUpdatesParams::builder().build()), ids, "nothing was acknowledged");
    let after = |id: u32| GetUpdatesParams::builder().offset(i64::from(id) + 1).build();
    assert_eq!(poll(&client, &after(ids[1])), ids[2..]);
    assert_eq!(
        poll(&client, &GetUpdatesParams::builder().build()),
        ids[2..],
        "what was acknowledged is gone"
    );
    assert_eq!(poll(&client, &after(ids[2])), [0; 0]);
    assert_eq!(bot.pending_updates(), [0; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn frankenstein_waits_in_a_long_poll_and_gets_only_the_kinds_it_asked_for() {
    let bot = start().await;
    let client = client(&bot, TOKEN);
    let params =
        GetUpdatesParams::builder().timeout(15).allowed_updates(vec![AllowedUpdate::Message]).build();
    let waiting = tokio::task::spawn_blocking(move || client.get_updates(&params).unwrap().result);
    bot.wait_for_calls("getUpdates", 1, SOON).await.unwrap();
    let asked = bot.push(&MessageSpec::text(ChatSpec::private(7), UserSpec::person(7), "hi"));
    let came = waiting.await.unwrap();
    assert_eq!(came.iter().map(|update| i64::from(update.update_id)).collect::<Vec<_>>(), [asked.update_id]);
    assert_eq!(message(&came[0]).text.as_deref(), Some("hi"));
    bot.push_edit(7, asked.message_id, "hello").unwrap();
    assert_eq!(bot.pending_updates(), [asked.update_id], "an edit was not asked for");
}

#[tokio::test(flavor = "multi_thread")]
async fn frankenstein_sends_with_entities_a_reply_and_a_topic() {
    let bot = start().await;
    let client = client(&bot, TOKEN);
    let forum = ChatSpec::of(ChatKind::Forum, SUPERGROUP);
    let asked = bot.push(&MessageSpec::text(forum, UserSpec::person(7), "what do you mean?").in_topic(9));
    let message_id = i32::try_from(asked.message_id).unwrap();
    let entities = vec![
        entity(MessageEntityType::Bold, 0, 2),
        MessageEntity {
            url: Some("https://example.org/".to_owned()),
            ..entity(MessageEntityType::TextLink, 3, 2)
        },
        MessageEntity { language: Some("rust".to_owned()), ..entity(MessageEntityType::Pre, 6, 3) },
    ];
    let reply = ReplyParameters::builder().message_id(message_id).quote("you mean").build();
    let params = SendMessageParams::builder()
        .chat_id(SUPERGROUP)
        .message_thread_id(9)
        .text("🙂 hi שלו")
        .entities(entities.clone())
        .reply_parameters(reply)
        .build();
    let sent = client.send_message(&params).unwrap().result;
    assert_eq!((sent.text.as_deref(), sent.entities.as_ref()), (Some("🙂 hi שלו"), Some(&entities)));
    assert_eq!((sent.message_thread_id, sent.is_topic_message), (Some(9), Some(true)));
    assert_eq!(sent.reply_to_message.unwrap().message_id, message_id);
    assert_eq!(sent.from.unwrap().id, 123_456);
    let recorded = &bot.sent()[0];
    assert_eq!(
        (recorded.thread, recorded.reply_to, recorded.was_answered),
        (Some(9), Some(asked.message_id), true)
    );

    let typing = SendChatActionParams::builder().chat_id(7).action(ChatAction::Typing).build();
    assert!(client.send_chat_action(&typing).unwrap().result);
}

#[tokio::test(flavor = "multi_thread")]
async fn frankenstein_sets_reads_and_deletes_menus() {
    let bot = start().await;
    let client = client(&bot, TOKEN);
    let menu = vec![BotCommand::builder().command("focus").description("What it looks at").build()];
    let scope = BotCommandScope::Chat(BotCommandScopeChat::builder().chat_id(7).build());
    let set = SetMyCommandsParams::builder().commands(menu.clone());
    let set = set.scope(scope.clone()).language_code("de").build();
    assert!(client.set_my_commands(&set).unwrap().result);
    let get = GetMyCommandsParams::builder().scope(scope.clone()).language_code("de").build();
    assert_eq!(client.get_my_commands(&get).unwrap().result, menu);
    assert_eq!(bot.menu("chat:7", "de").len(), 1);
    let everywhere = GetMyCommandsParams::builder().build();
    assert!(client.get_my_commands(&everywhere).unwrap().result.is_empty());
    let delete = DeleteMyCommandsParams::builder().scope(scope).language_code("de").build();
    assert!(client.delete_my_commands(&delete).unwrap().result);
    assert!(client.get_my_commands(&get).unwrap().result.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn frankenstein_sets_reads_and_deletes_the_webhook() {
    let bot = start().await;
    let client = client(&bot, TOKEN);
    let none = client.get_webhook_info().unwrap().result;
    assert_eq!((none.url.as_str(), none.max_connections, none.allowed_updates), ("", None, None));
    let url = "https://example.org/telegram";
    let kinds = vec![AllowedUpdate::Message, AllowedUpdate::EditedMessage];
    let set = SetWebhookParams::builder().url(url).max_connections(1).secret_token("s3cret_-");
    assert!(client.set_webhook(&set.allowed_updates(kinds.clone()).build()).unwrap().result);
    bot.push_message(ChatSpec::private(7), UserSpec::person(7), "hi");
    // A delivery fails, since nothing beyond loopback is reached.
    let failed = async {
        loop {
            let info = client.get_webhook_info().unwrap().result;
            if info.last_error_date.is_some() {
                return info;
            }
            tokio::task::yield_now().await;
        }
    };
    let info = tokio::time::timeout(SOON, failed).await.unwrap();
    assert_eq!((info.url.as_str(), info.pending_update_count), (url, 1));
    assert_eq!((info.max_connections, info.allowed_updates), (Some(1), Some(kinds)));
    assert!(info.last_error_message.is_some() && !info.has_custom_certificate);
    let polled = refusal(client.get_updates(&GetUpdatesParams::builder().build()));
    assert_eq!(polled.error_code, 409);
    let delete = DeleteWebhookParams::builder().drop_pending_updates(true).build();
    assert!(client.delete_webhook(&delete).unwrap().result);
    assert_eq!(client.get_webhook_info().unwrap().result.url, "");
    assert!(updates(&client, 0).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn frankenstein_reads_every_refusal_as_its_own_type() {
    let bot = start().await;
    let wrong = refusal(client(&bot, "123456:wrong").get_me());
    assert_eq!((wrong.ok, wrong.error_code, wrong.description.as_str()), (false, 401, "Unauthorized"));
    let client = client(&bot, TOKEN);
    let send =
        |chat: i64| client.send_message(&SendMessageParams::builder().chat_id(chat).text("hi").build());
    assert_eq!(refusal(send(8)).description, "Bad Request: chat not found");
    let beyond = vec![entity(MessageEntityType::Bold, 1, 2)];
    let beyond = SendMessageParams::builder().chat_id(7).text("hi").entities(beyond).build();
    assert_eq!(refusal(client.send_message(&beyond)).error_code, 400);

    bot.fail("sendMessage", Failure::blocked());
    let blocked = refusal(send(7));
    assert_eq!((blocked.error_code, blocked.parameters), (403, None));
    bot.fail("sendMessage", Failure::TooManyRequests { retry_after_seconds: 31 });
    let limited = refusal(send(7));
    assert_eq!((limited.error_code, limited.parameters.unwrap().retry_after), (429, Some(31)));
    bot.fail("sendMessage", Failure::Migrated { to_chat_id: SUPERGROUP });
    let migrated = refusal(send(7));
    assert_eq!(
        (migrated.error_code, migrated.parameters.unwrap().migrate_to_chat_id),
        (400, Some(SUPERGROUP))
    );
    bot.fail("sendMessage", Failure::internal());
    assert_eq!(refusal(send(7)).error_code, 500);
    for broken in [Failure::BadGateway, Failure::InvalidJson] {
        bot.fail("sendMessage", broken);
        assert!(matches!(send(7), Err(Error::JsonDecode { .. })));
    }
    for cut in [Failure::DropBefore, Failure::DropAfter, Failure::Truncated] {
        bot.fail("sendMessage", cut);
        assert!(matches!(send(7), Err(Error::HttpUreq(_))));
    }
}

/// A Python that has python-telegram-bot, where this machine has one.
async fn python() -> Option<Command> {
    let name = std::env::var_os("THOUGHT_TEST_TELEGRAM_PYTHON").unwrap_or_else(|| "python3".into());
    let has = Command::new(&name).args(["-c", "import telegram.error"]).stderr(Stdio::null()).status().await;
    has.is_ok_and(|status| status.success()).then(|| Command::new(name))
}

#[tokio::test(flavor = "multi_thread")]
async fn python_telegram_bot_talks_to_it_too() {
    let Some(mut python) = python().await else {
        tell(
            "NOT CHECKED: this machine's Python has no python-telegram-bot, so tests/real_client.py did not run",
        );
        return;
    };
    let bot = start().await;
    push_every_kind(&bot);
    for failure in [
        Failure::blocked(),
        Failure::TooManyRequests { retry_after_seconds: 31 },
        Failure::Migrated { to_chat_id: SUPERGROUP },
        Failure::internal(),
    ] {
        bot.fail("sendMessage", failure);
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real_client.py");
    let done = python.args([script, &bot.base_url(), TOKEN]).env("NO_PROXY", "*").output().await.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "talked");
    assert_eq!(bot.sent().len(), 1);
}

#[expect(clippy::print_stderr, reason = "what was not checked is said aloud")]
fn tell(text: &str) {
    eprintln!("{text}");
}
