//! Batches and updates beyond the bound of an answer, against a server that writes as the Bot API does: numbers first.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod world;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use thought_contract::event::EventType;
use thought_contract::payload::TelegramMessage;
use thought_telegram::ingress::ChannelState;
use thought_telegram::limits::UPDATES_BYTES_MAX;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use world::{TOKEN, World, client_with};

/// Updates that wait, each as it is written.
type Queue = Arc<Mutex<Vec<(i64, String)>>>;
/// The `limit` of each poll.
type Limits = Arc<Mutex<Vec<u64>>>;

fn written(id: i64, chat: i64, text: &str) -> (i64, String) {
    let message = json!({"message_id": id, "date": 1_796_000_000, "text": text,
        "chat": {"id": chat, "type": "private"}, "from": {"id": chat, "is_bot": false}});
    (id, format!("{{\"update_id\":{id},\"message\":{message}}}"))
}

async fn request(stream: &mut TcpStream) -> (String, Value) {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 4_096];
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the request ended early");
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        if let Ok(body) = serde_json::from_slice(&bytes[end + 4..]) {
            return (String::from_utf8(bytes[..end].to_vec()).unwrap(), body);
        }
    }
}

fn updates(queue: &Queue, body: &Value) -> String {
    let mut queue = queue.lock().unwrap();
    let offset = body["offset"].as_i64().unwrap_or(0);
    queue.retain(|(id, _)| *id >= offset);
    let limit = usize::try_from(body["limit"].as_u64().unwrap()).unwrap();
    let batch: Vec<_> = queue.iter().take(limit).map(|(_, update)| update.as_str()).collect();
    format!("[{}]", batch.join(","))
}

/// One call a connection.
async fn serve(queue: Queue, limits: Limits) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (head, body) = request(&mut stream).await;
            let result = if head.contains("/getUpdates") {
                limits.lock().unwrap().push(body["limit"].as_u64().unwrap());
                updates(&queue, &body)
            } else {
                json!({"id": 123_456, "is_bot": true, "username": "stream_bot"}).to_string()
            };
            let body = format!("{{\"ok\":true,\"result\":{result}}}");
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            // The client may have had enough before the end, and a poll that finds nothing comes again at once.
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(body.as_bytes()).await;
            let _ = stream.shutdown().await;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
    url
}

async fn texts(world: &World, count: usize) -> Vec<String> {
    let events = world.wait_for_events(EventType::TelegramMessage, count).await;
    events.iter().map(|event| event.payload::<TelegramMessage>().unwrap().text.unwrap()).collect()
}

#[tokio::test]
async fn a_batch_that_is_too_large_comes_in_halves_and_one_that_is_too_large_alone_is_passed_over() {
    let third = "x".repeat(UPDATES_BYTES_MAX / 3 + 1);
    let queue = vec![
        written(1, 4242, "one"),
        written(2, 999, &third),
        written(3, 999, &third),
        written(4, 999, &third),
        written(5, 4242, "two"),
        written(6, 4242, &"x".repeat(UPDATES_BYTES_MAX + 1)),
        written(7, 4242, "three"),
    ];
    let limits = Limits::default();
    let url = serve(Arc::new(Mutex::new(queue)), limits.clone()).await;
    let world = World::new().await;
    let running = world.ingress_with(&client_with(&url, TOKEN));
    assert_eq!(texts(&world, 3).await, ["one", "two", "three"]);
    running.stop().await;
    let limits = limits.lock().unwrap().clone();
    assert_eq!(limits[..6], [100, 50, 25, 12, 6, 3], "halved until a batch fits");
    assert!(limits.contains(&1) && limits[6] == 100, "and asked for in full again");
}

#[tokio::test]
async fn an_update_too_large_whose_number_cannot_be_told_is_a_problem_that_is_told() {
    let (id, update) = written(1, 4242, &"x".repeat(UPDATES_BYTES_MAX + 1));
    let hidden = update.replacen("{\"update_id\":1,", "{\"unknown\":0,\"update_id\":1,", 1);
    let queue = Arc::new(Mutex::new(vec![(id, hidden), written(2, 4242, "behind")]));
    let url = serve(queue.clone(), Limits::default()).await;
    let world = World::new().await;
    let mut running = world.ingress_with(&client_with(&url, TOKEN));
    running.wait_for_state(ChannelState::Problem { code: "too-large" }).await;
    assert!(world.events(&[EventType::TelegramMessage]).await.is_empty());
    // Telegram drops it after a day, and what stands behind it comes.
    queue.lock().unwrap().remove(0);
    assert_eq!(texts(&world, 1).await, ["behind"]);
    running.stop().await;
}
