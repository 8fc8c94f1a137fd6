//! Photos on their way in: fetched beside everything else, kept before the event that names them, and bounded.

mod world;

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use thought_contract::event::EventType;
use thought_fakes::{ChatSpec, Failure, MessageSpec, PhotoSize, PhotoSpec, UserSpec};
use world::{World, payload};

/// A picture of these sides, and unlike any other.
fn png(width: u32, height: u32, mark: &str) -> Vec<u8> {
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(),
        &width.to_be_bytes(),
        &height.to_be_bytes(),
        mark.as_bytes(),
    ]
    .concat()
}

fn photo(world: &World, chat: i64, photo: PhotoSpec, caption: Option<&str>) {
    world.bot.push(&MessageSpec::photo(ChatSpec::private(chat), UserSpec::person(chat), photo, caption));
}

async fn message(world: &World) -> Value {
    payload(&world.wait_for_events(EventType::TelegramMessage, 1).await[0])
}

#[tokio::test]
async fn a_photo_is_one_message_in_its_largest_size_that_may_be_taken() {
    let world = World::new().await;
    let size = |width: u32, bytes| PhotoSize { bytes, width, height: width };
    let sizes = vec![
        size(90, png(90, 90, "small")),
        size(800, png(800, 800, "large")),
        size(2_000, vec![0; 5 * 1024 * 1024 + 1]),
    ];
    photo(&world, 4242, PhotoSpec { sizes }, Some("look"));
    let running = world.ingress();
    let message = message(&world).await;
    running.stop().await;
    let bytes = png(800, 800, "large");
    let image = &message["images"][0];
    assert_eq!(message["images"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&image["byteCount"], &image["width"], &image["height"]),
        (&json!(bytes.len()), &json!(800), &json!(800))
    );
    assert_eq!((&image["mediaType"], &message["text"]), (&json!("image/png"), &json!("look")));
    let kept = world.blobs.kept.lock().unwrap();
    assert_eq!(
        kept.iter().map(|(name, bytes)| (name.to_string(), bytes.clone())).collect::<Vec<_>>(),
        [(image["blobSha256"].as_str().unwrap().to_owned(), bytes)]
    );
}

#[tokio::test]
async fn report_31_an_album_of_three_with_captions_on_the_first_and_third_is_one_message() {
    let world = World::new().await;
    let part = |mark: &str, caption| (PhotoSpec::single(png(4, 3, mark)), caption);
    let parts = vec![part("a", Some("first")), part("b", None), part("c", Some("third"))];
    world.bot.push_album(&ChatSpec::private(4242), &UserSpec::person(4242), "album", parts);
    let running = world.ingress();
    let message = message(&world).await;
    running.stop().await;
    assert_eq!(message["text"], "first\n\nthird");
    let names: Vec<_> =
        message["images"].as_array().unwrap().iter().map(|i| i["blobSha256"].clone()).collect();
    let wanted = ["a", "b", "c"].map(|mark| json!(thought_protocol::Sha256Hex::of(&png(4, 3, mark))));
    assert_eq!(names, wanted);
}

#[tokio::test]
async fn a_slow_photo_holds_up_its_own_chat_alone_and_keeps_its_order() {
    let world = World::new().await;
    world.bot.fail("file", Failure::Delay(Duration::from_millis(1_500)));
    photo(&world, 1, PhotoSpec::single(png(4, 3, "slow")), None);
    world.push(1, "behind the photo");
    world.push(2, "elsewhere");
    let running = world.ingress();
    world
        .wait_until("three messages", async || world.events(&[EventType::TelegramMessage]).await.len() == 3)
        .await;
    running.stop().await;
    let events = world.events(&[EventType::TelegramMessage]).await;
    let seen: Vec<_> = events.iter().map(payload).map(|p| (p["chatId"].clone(), p["text"].clone())).collect();
    assert_eq!(
        seen,
        [(json!(2), json!("elsewhere")), (json!(1), Value::Null), (json!(1), json!("behind the photo"))]
    );
}

#[tokio::test]
async fn a_file_server_that_fails_for_a_while_loses_no_photo() {
    let world = World::new().await;
    world.bot.fail("getFile", Failure::BadGateway);
    world.bot.fail("getFile", Failure::TooManyRequests { retry_after_seconds: 1 });
    world.bot.fail("file", Failure::DropBefore);
    world.bot.fail("file", Failure::Truncated);
    world.blobs.refusals.store(1, Ordering::Relaxed);
    photo(&world, 4242, PhotoSpec::single(png(4, 3, "x")), Some("look"));
    let running = world.ingress();
    let message = message(&world).await;
    running.stop().await;
    assert_eq!(message["images"][0]["byteCount"], png(4, 3, "x").len());
}

#[tokio::test]
async fn what_is_no_picture_or_cannot_be_had_gives_one_notice_and_no_turn() {
    let mut world = World::new().await;
    world.photo_patience_ms = 300;
    let lies = [b"<svg/>".to_vec(), png(9_000, 1, "wide"), png(0, 1, "flat"), Vec::new()];
    for (chat, bytes) in (1..).zip(&lies) {
        photo(&world, chat, PhotoSpec::single(bytes.clone()), Some("what is this?"));
    }
    let running = world.ingress();
    let notices = world.wait_for_events(EventType::NoticeRequested, lies.len()).await;
    world.bot.fail_times("getFile", 100, Failure::BadGateway);
    photo(&world, 20, PhotoSpec::single(png(4, 3, "never")), Some("and this?"));
    world.wait_for_events(EventType::NoticeRequested, lies.len() + 1).await;
    world.bot.clear_failures();
    // The next one is heard.
    world.push(20, "well then");
    world.wait_for_events(EventType::TelegramMessage, 1).await;
    running.stop().await;
    assert!(notices.iter().all(|notice| payload(notice)["name"] == "unsupported-kind"));
    assert!(world.blobs.kept.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_album_goes_on_without_the_photo_that_cannot_be_had() {
    let world = World::new().await;
    let parts = vec![
        (PhotoSpec::single(png(4, 3, "good")), Some("both")),
        (PhotoSpec::single(b"not a picture".to_vec()), None),
    ];
    world.bot.push_album(&ChatSpec::private(4242), &UserSpec::person(4242), "album", parts);
    let running = world.ingress();
    let message = message(&world).await;
    running.stop().await;
    assert_eq!((message["images"].as_array().unwrap().len(), &message["text"]), (1, &json!("both")));
    assert!(world.events(&[EventType::NoticeRequested]).await.is_empty());
}

#[tokio::test]
async fn a_process_that_dies_while_it_fetches_fetches_again_and_names_the_photo_once() {
    let world = World::new().await;
    world.bot.fail("file", Failure::HangAfter);
    photo(&world, 4242, PhotoSpec::single(png(4, 3, "x")), Some("look"));
    let running = world.ingress();
    world.bot.wait_for_calls("file", 1, world::PATIENCE).await.unwrap();
    running.kill().await;
    assert!(world.events(&[EventType::TelegramMessage]).await.is_empty());
    let running = world.ingress();
    message(&world).await;
    running.stop().await;
    assert_eq!(world.blobs.kept.lock().unwrap().len(), 1);
}
