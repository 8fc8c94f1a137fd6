//! Photos from outside: one turn with images in both model APIs, blobs that are what they claim, and what happens when one
//! is gone.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thought_fakes::{ChatSpec, Failure, MessageSpec, PhotoSize, PhotoSpec, RecordedRequest, Reply, UserSpec};
use thought_testkit::wait_for;
use thought_testkit::world::{CHAT, Speaks, TOKEN, World};

use crate::THOUGHT;

/// A picture of these sides, and unlike any other.
fn png(width: u32, height: u32, mark: &str) -> Vec<u8> {
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &sides, mark.as_bytes()].concat()
}

fn photo(world: &World, photo: PhotoSpec, caption: Option<&str>) {
    world.bot.push(&MessageSpec::photo(ChatSpec::private(CHAT), UserSpec::person(CHAT), photo, caption));
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(*group.get(at).unwrap_or(&0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = char::from(ALPHABET[(bits >> shift & 63) as usize]);
            text.push(if place <= group.len() { digit } else { '=' });
        }
    }
    text
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Media type and base64 of the images of the last message, and its text.
fn shown(request: &RecordedRequest) -> (Vec<(String, String)>, String) {
    let last = request.json["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    let Some(parts) = last["content"].as_array() else {
        return (Vec::new(), last["content"].as_str().unwrap().to_owned());
    };
    let mut images = Vec::new();
    let mut text = String::new();
    for part in parts {
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        match part["type"].as_str().unwrap() {
            "image" => images.push((word(&part["source"]["media_type"]), word(&part["source"]["data"]))),
            "image_url" => {
                let url = word(&part["image_url"]["url"]);
                let (kind, data) = url.strip_prefix("data:").unwrap().split_once(";base64,").unwrap();
                images.push((kind.to_owned(), data.to_owned()));
            }
            "text" => text.push_str(part["text"].as_str().unwrap()),
            other => panic!("{other}"),
        }
    }
    (images, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn report_31_an_album_with_two_captions_is_one_turn_with_three_images_in_both_apis() {
    for speaks in [Speaks::Anthropic, Speaks::OpenAi] {
        let world = World::speaking(THOUGHT, speaks, None).await;
        let serve = world.serve();
        let pictures = ["a", "b", "c"].map(|mark| png(40, 30, mark));
        let captions = [Some("the first"), None, Some("the third")];
        let parts = pictures.iter().cloned().map(PhotoSpec::single).zip(captions).collect();
        world.bot.push_album(&ChatSpec::private(CHAT), &UserSpec::person(CHAT), "album-1", parts);
        world.home.wait_for_deliveries("reply", 1);
        let (images, text) = shown(&world.model.requests()[0]);
        let wanted: Vec<_> = pictures.iter().map(|bytes| ("image/png".to_owned(), base64(bytes))).collect();
        assert_eq!((images, text.as_str()), (wanted, "the first\n\nthe third"), "{speaks:?}");
        let [message] = &world.home.events("source.telegram.message@1")[..] else { panic!("one message") };
        let payload = &message["payload"];
        let names: Vec<_> =
            payload["images"].as_array().unwrap().iter().map(|i| i["blobSha256"].clone()).collect();
        assert_eq!(names, pictures.each_ref().map(|bytes| json!(sha256(bytes))));
        for (name, bytes) in names.iter().zip(&pictures) {
            let path = world.home.below("blobs").join(name.as_str().unwrap());
            assert_eq!(fs::read(&path).unwrap(), *bytes);
            assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
        }
        assert_eq!(fs::read_dir(world.home.below("blobs")).unwrap().count(), 3);
        // In the turn behind, they stand as words.
        world.turn("and now?", 2).await;
        let (images, _) = shown(&world.model.requests()[1]);
        assert!(images.is_empty());
        let body = String::from_utf8(world.model.requests()[1].body.clone()).unwrap();
        assert_eq!(body.matches("[image]").count(), 3, "{speaks:?}");
        assert!(!body.contains(&base64(&pictures[0])));
        let run = world.home.runs()[0]["id"].as_str().unwrap().to_owned();
        world.home.json(&["context-show", &run, "--acknowledge-sensitive-private"]).exit(0);
        serve.stop();
    }
}

/// The parts of an album that arrive together.
fn parts(world: &World, album: &str, parts: Vec<(PhotoSpec, Option<&str>)>) {
    world.bot.push_album(&ChatSpec::private(CHAT), &UserSpec::person(CHAT), album, parts);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_photo_that_comes_too_late_for_its_album_is_a_turn_of_its_own_and_one_that_comes_twice_is_none() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let pictures = ["a", "b", "c"].map(|mark| png(40, 30, mark));
    let single = |at: usize| PhotoSpec::single(pictures[at].clone());
    parts(&world, "album", vec![(single(0), Some("the first")), (single(1), None)]);
    world.home.wait_for_deliveries("reply", 1);
    // Late, with and without words, and beside them one that is in the album already.
    parts(&world, "album", vec![(single(2), None), (single(1), None), (single(2), Some("the third"))]);
    world.home.wait_for_deliveries("reply", 3);
    world.turn("that was all", 4).await;
    serve.stop();
    let requests = world.model.requests();
    let seen: Vec<_> = requests.iter().map(shown).map(|(images, text)| (images.len(), text)).collect();
    let wanted = [(2, "the first"), (1, ""), (1, "the third"), (0, "that was all")];
    assert_eq!(seen, wanted.map(|(images, text)| (images, text.to_owned())));
    let messages = world.home.events("source.telegram.message@1");
    let names: Vec<_> = messages.iter().map(|message| message["payload"]["mediaGroupId"].clone()).collect();
    assert_eq!(names, [json!("album"), Value::Null, Value::Null, Value::Null]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_album_with_a_video_the_photos_and_every_caption_are_a_turn_and_one_notice_tells_of_the_rest() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let (chat, person) = (ChatSpec::private(CHAT), UserSpec::person(CHAT));
    let film = |caption: Option<&str>| {
        let mut film = MessageSpec::bare(chat.clone(), Some(person.clone())).with("video", json!({}));
        film.media_group_id = Some("mixed".to_owned());
        match caption {
            Some(caption) => film.with("caption", json!(caption)),
            None => film,
        }
    };
    world.bot.push(&film(Some("both from the trip")));
    parts(&world, "mixed", vec![(PhotoSpec::single(png(4, 3, "x")), None)]);
    world.bot.push(&film(None));
    world.home.wait_for_deliveries("reply", 1);
    world.home.wait_for_deliveries("notice:unsupported-kind", 1);
    // One more that comes late is told of already.
    world.bot.push(&film(None));
    world.turn("and now?", 2).await;
    serve.stop();
    let (images, text) = shown(&world.model.requests()[0]);
    assert_eq!((images.len(), text.as_str()), (1, "both from the trip"));
    assert_eq!(world.home.deliveries("notice:unsupported-kind").len(), 1);
    assert_eq!(world.home.events("source.telegram.message@1").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_photo_without_words_is_a_turn_and_its_address_and_token_stand_nowhere() {
    let world = World::start(THOUGHT).await;
    let serve = thought_testkit::serve::Serve::start_with(&world.home, &["--log-level", "trace"]);
    photo(&world, PhotoSpec::single(png(9, 9, "x")), None);
    world.home.wait_for_deliveries("reply", 1);
    let log = serve.stop();
    let (images, text) = shown(&world.model.requests()[0]);
    assert_eq!((images.len(), text.as_str()), (1, ""));
    let parts = [TOKEN, "testkit-token", "photos/file_", "/file/bot"];
    assert_eq!(thought_testkit::canary::in_bytes("the log", log.as_bytes(), &parts), [""; 0]);
    assert_eq!(thought_testkit::canary::in_folder(&world.home.path, &parts), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_twenty_mebibytes_are_not_sent_and_the_rest_stands_as_a_word() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let large = |mark: &str| [png(2_000, 2_000, mark), vec![7; 4_900_000]].concat();
    let parts = ["a", "b", "c", "d", "e"].map(|mark| (PhotoSpec::single(large(mark)), None));
    world.bot.push_album(&ChatSpec::private(CHAT), &UserSpec::person(CHAT), "album-2", parts.into());
    world.home.wait_for_deliveries("reply", 1);
    serve.stop();
    let (images, text) = shown(&world.model.requests()[0]);
    assert_eq!((images.len(), text.as_str()), (4, "[image]"));
    assert_eq!(
        world.home.events("source.telegram.message@1")[0]["payload"]["images"].as_array().unwrap().len(),
        5
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_claims_to_be_a_photo_and_is_none_gets_the_fixed_notice_and_no_turn() {
    let world = World::start(THOUGHT).await;
    let serve = world.serve();
    let sizes = vec![PhotoSize { bytes: vec![0; 5 * 1024 * 1024 + 1], width: 3_000, height: 3_000 }];
    photo(&world, PhotoSpec { sizes }, Some("too large"));
    photo(&world, PhotoSpec::single(b"<html>no photo</html>".to_vec()), Some("what is this?"));
    photo(&world, PhotoSpec::single(b"\xff\xd8\xff".to_vec()), Some("and this?"));
    world.home.wait_for_deliveries("notice:unsupported-kind", 3);
    world.bot.fail("file", Failure::Refused { code: 404, description: "Not Found".to_owned() });
    photo(&world, PhotoSpec::single(png(4, 3, "gone")), Some("gone"));
    world.home.wait_for_deliveries("notice:unsupported-kind", 4);
    world.turn("only words", 1).await;
    serve.stop();
    let texts: Vec<_> = world.bot.sent().into_iter().map(|sent| sent.text).collect();
    assert_eq!(texts[..4], ["I can't read that kind of message yet."; 4]);
    assert_eq!(world.model.request_count(), 1);
    assert_eq!(world.home.events("source.telegram.message@1").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_that_is_gone_or_changed_ends_the_run_with_a_reason_and_nothing_else_is_sent() {
    let world = World::start(THOUGHT).await;
    world.model.script(vec![Reply::status(500), Reply::Hang]);
    let serve = world.serve();
    photo(&world, PhotoSpec::single(png(4, 3, "x")), Some("look"));
    world.requests(2).await;
    serve.kill();
    let [blob] = &fs::read_dir(world.home.below("blobs")).unwrap().collect::<Vec<_>>()[..] else {
        panic!("one")
    };
    let path = blob.as_ref().unwrap().path();
    fs::write(&path, png(4, 3, "y")).unwrap();
    let serve = world.serve();
    let runs = world.home.wait_for_runs("failed", 1);
    assert_eq!(runs[0]["reason"], "context-unreadable");
    let log = wait_for("the log", || Some(serve.log()).filter(|log| log.contains("changed")));
    assert!(log.contains("a blob cannot be read"), "{log}");
    assert_eq!(world.model.request_count(), 2);
    fs::remove_file(&path).unwrap();
    let run = runs[0]["id"].as_str().unwrap();
    let told = world.home.json(&["context-show", run]).exit(1).stderr;
    assert!(told.contains("missing"), "{told}");
    world.home.wait_for_deliveries("notice:run-failed", 1);
    serve.stop();
}
