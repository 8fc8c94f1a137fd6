//! A corrected answer to a photo: the packet is rebuilt with it, the example holds a word in its place, and without it
//! there is no example.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use thought_fakes::{ChatSpec, MessageSpec, PhotoSpec, UserSpec};
use thought_testkit::world::CHAT;

use crate::scene::{Scene, says};

fn png(mark: &str) -> Vec<u8> {
    let sides = [9_u32.to_be_bytes(), 9_u32.to_be_bytes()].concat();
    [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &sides, mark.as_bytes()].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_stands_as_a_word_and_a_lost_one_leaves_the_example_out() {
    let scene = Scene::start().await;
    let world = &scene.world;
    world.model.script(vec![says("A cat.")]);
    let serve = world.serve();
    let photo = PhotoSpec::single(png("canary-of-an-image"));
    let chat = ChatSpec::private(CHAT);
    world.bot.push(&MessageSpec::photo(chat, UserSpec::person(CHAT), photo, Some("What is this?")));
    world.home.wait_for_deliveries("reply", 1);
    scene.correct("A dog.", 1);
    serve.stop();
    assert_eq!(scene.private("a.jsonl").exit(0).object()["included"], 1);
    let prompt = scene.lines("a.jsonl")[0]["prompt"].clone();
    let last = prompt.as_array().unwrap().last().unwrap().clone();
    assert_eq!(last, json!({"role": "user", "content": "[image]\nWhat is this?"}));
    assert!(!scene.text("a.jsonl").contains("canary"));

    let blobs: Vec<PathBuf> = files(world.home.below("blobs"));
    assert_eq!(blobs.len(), 1, "{blobs:?}");
    fs::remove_file(&blobs[0]).unwrap();
    let report = scene.private("b.jsonl").exit(0).object();
    assert_eq!(report["excluded"], json!({"context-snapshot-image-unreadable": 1}));
}

fn files(folder: PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(path) } else { vec![path] }).collect()
}
