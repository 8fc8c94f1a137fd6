//! The Bot API, as one value: updates that come late, twice and not at all, and messages that may have arrived.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use thought_store::BoxFuture;
use thought_telegram::client::{Carrier, ClientError, ConnectFailure};

use crate::chaos::Chaos;
use crate::dice::Dice;

/// What may happen to a call.
pub(crate) const KINDS: [&str; 12] = [
    "updates-late",
    "updates-doubled",
    "updates-refused",
    "updates-cut",
    "send-retry-after",
    "send-server-error",
    "send-cut-before",
    "send-cut-after",
    "send-unreachable",
    "send-hangs",
    "send-bad-entities",
    "send-forbidden",
];

struct State {
    dice: Dice,
    /// How many calls of a hundred go wrong.
    faults_percent: u64,
    waiting: VecDeque<(i64, Value)>,
    confirmed: VecDeque<Value>,
    next_update: i64,
    next_message: i64,
    /// Each message that arrived: its chat, number and text.
    arrived: Vec<(i64, i64, String)>,
    calls: BTreeMap<String, u64>,
}

/// The channel.
pub(crate) struct Channel {
    state: Mutex<State>,
    chaos: Arc<Chaos>,
}

/// An answer, or what keeps it.
enum Act {
    Says(u16, Value),
    Fails(ClientError),
    Waits(u64, Value),
}

impl Channel {
    pub(crate) fn new(dice: Dice, faults_percent: u64, chaos: Arc<Chaos>) -> Arc<Self> {
        let state = State {
            dice,
            faults_percent,
            waiting: VecDeque::new(),
            confirmed: VecDeque::new(),
            next_update: 500,
            next_message: 10,
            arrived: Vec::new(),
            calls: BTreeMap::new(),
        };
        Arc::new(Self { state: Mutex::new(state), chaos })
    }

    /// A person writes in a private chat.
    pub(crate) fn push(&self, chat: i64, text: &str, reply_to: Option<i64>) {
        let mut state = self.state.lock().unwrap();
        state.next_message += 1;
        let mut message = json!({
            "message_id": state.next_message, "date": 1_796_000_000, "text": text,
            "chat": {"id": chat, "type": "private"},
            "from": {"id": chat, "is_bot": false, "first_name": "A"},
        });
        if let Some(number) = reply_to {
            message["reply_to_message"] = json!({
                "message_id": number, "date": 1_796_000_000, "chat": {"id": chat, "type": "private"},
            });
        }
        if text.starts_with('/') {
            let length = text.split(' ').next().unwrap().encode_utf16().count();
            message["entities"] = json!([{"type": "bot_command", "offset": 0, "length": length}]);
        }
        state.enqueue(message);
    }

    /// From now on, nothing goes wrong.
    pub(crate) fn calm(&self) {
        self.state.lock().unwrap().faults_percent = 0;
    }

    pub(crate) fn arrived(&self) -> Vec<(i64, String)> {
        let state = self.state.lock().unwrap();
        state.arrived.iter().map(|(chat, _, text)| (*chat, text.clone())).collect()
    }

    /// A message arrives that nobody sends any more: what a check must find.
    pub(crate) fn arrives_again(&self, chat: i64, text: &str) {
        self.state.lock().unwrap().arrive(&json!({"chat_id": chat, "text": text}));
    }

    /// Numbers of the messages that arrived in a chat.
    pub(crate) fn numbers_in(&self, chat: i64) -> Vec<i64> {
        let state = self.state.lock().unwrap();
        state.arrived.iter().filter(|(to, ..)| *to == chat).map(|(_, number, _)| *number).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().unwrap().waiting.is_empty()
    }

    fn act(&self, method: &str, body: &Value) -> Act {
        let mut state = self.state.lock().unwrap();
        *state.calls.entry(method.to_owned()).or_default() += 1;
        let faulty = {
            let percent = state.faults_percent;
            state.dice.percent(percent)
        };
        match method {
            "getMe" => ok(json!({"id": 1, "is_bot": true, "first_name": "S", "username": "stream_bot"})),
            "getUpdates" => self.updates(&mut state, body, faulty),
            "sendMessage" => self.send(&mut state, body, faulty),
            _ => ok(json!(true)),
        }
    }

    fn updates(&self, state: &mut State, body: &Value, faulty: bool) -> Act {
        if let Some(offset) = body["offset"].as_i64()
            && let Some(at) = state.waiting.iter().position(|(number, _)| number + 1 == offset)
        {
            for (_, message) in state.waiting.drain(..=at).collect::<Vec<_>>() {
                state.confirmed.push_back(message);
            }
        }
        let mut limit = usize::try_from(body["limit"].as_u64().unwrap_or(100)).unwrap();
        let wait_ms = body["timeout"].as_u64().unwrap_or(0) * 1_000;
        if faulty {
            match state.dice.below(4) {
                0 => {
                    self.chaos.count(KINDS[0]);
                    limit = limit.min(1);
                }
                1 => {
                    if let Some(again) = state.confirmed.back().cloned() {
                        self.chaos.count(KINDS[1]);
                        state.enqueue(again);
                    }
                }
                2 => {
                    self.chaos.count(KINDS[2]);
                    return Act::Says(502, json!({"ok": false, "error_code": 502}));
                }
                _ => {
                    self.chaos.count(KINDS[3]);
                    return Act::Fails(ClientError::Uncertain);
                }
            }
        }
        let batch: Vec<Value> = state
            .waiting
            .iter()
            .take(limit)
            .map(|(number, message)| json!({"update_id": number, "message": message}))
            .collect();
        let answer = json!({"ok": true, "result": batch});
        if batch.is_empty() && wait_ms > 0 { Act::Waits(wait_ms, answer) } else { Act::Says(200, answer) }
    }

    fn send(&self, state: &mut State, body: &Value, faulty: bool) -> Act {
        let refused = |status: u16, more: Value| {
            let mut answer = json!({"ok": false, "error_code": status});
            answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Act::Says(status, answer)
        };
        if faulty {
            let has_entities = body.get("entities").is_some();
            let drawn = KINDS[4 + usize::try_from(state.dice.below(8)).unwrap()];
            // Few messages have entities.
            let kind = if has_entities && state.dice.percent(40) { "send-bad-entities" } else { drawn };
            if kind != "send-bad-entities" || has_entities {
                self.chaos.count(kind);
            }
            match kind {
                "send-retry-after" => return refused(429, json!({"parameters": {"retry_after": 3}})),
                "send-server-error" => return refused(500, json!({})),
                "send-cut-before" => return Act::Fails(ClientError::Uncertain),
                "send-cut-after" => {
                    state.arrive(body);
                    return Act::Fails(ClientError::Uncertain);
                }
                "send-unreachable" => {
                    return Act::Fails(ClientError::Unreachable { cause: ConnectFailure::TimedOut });
                }
                "send-hangs" => return Act::Waits(10 * 60_000, json!({"ok": false})),
                "send-bad-entities" if has_entities => {
                    return refused(400, json!({"description": "Bad Request: can't parse entities"}));
                }
                "send-forbidden" => return refused(403, json!({})),
                _ => {}
            }
        }
        let number = state.arrive(body);
        ok(json!({"message_id": number, "date": 1_796_000_000, "chat": {"id": body["chat_id"]}}))
    }
}

impl State {
    fn enqueue(&mut self, message: Value) {
        self.next_update += 1;
        self.waiting.push_back((self.next_update, message));
    }

    fn arrive(&mut self, body: &Value) -> i64 {
        self.next_message += 1;
        let text = body["text"].as_str().unwrap().to_owned();
        self.arrived.push((body["chat_id"].as_i64().unwrap(), self.next_message, text));
        self.next_message
    }
}

fn ok(result: Value) -> Act {
    Act::Says(200, json!({"ok": true, "result": result}))
}

impl Carrier for Channel {
    fn carry(
        &self,
        method: &'static str,
        body: Vec<u8>,
    ) -> BoxFuture<'_, Result<(u16, Vec<u8>), ClientError>> {
        Box::pin(async move {
            if self.chaos.is_dead() {
                std::future::pending::<()>().await;
            }
            let body: Value = serde_json::from_slice(&body).unwrap();
            let act = self.act(method, &body);
            let (status, answer) = match act {
                Act::Says(status, answer) => (status, answer),
                Act::Fails(error) => return Err(error),
                Act::Waits(ms, answer) => {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    (200, answer)
                }
            };
            Ok((status, serde_json::to_vec(&answer).unwrap()))
        })
    }
}
