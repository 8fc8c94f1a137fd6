//! The provider and the jail: every kind of reply and of worker, drawn by the seed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use thought_contract::payload::{AgentMessage, TelegramMessage};
use thought_contract::run::{AttemptState, HeldReason, RunState};
use thought_protocol::packet::{Api, Compat, Packet, TokenLimit};
use thought_protocol::result::{Outcome, judge};
use thought_protocol::{AttemptId, Sensitive, provider};
use thought_runtime::port::{Binding, Jail, JailError, JailErrorKind, Model, ModelReply, Worker};
use thought_store::row::RunFilter;
use thought_store::{BoxFuture, Reads};
use thought_store_sqlite::SqliteStore;

use crate::chaos::Chaos;
use crate::dice::Dice;
use crate::engine::now;

/// What a provider may do with a request.
pub(crate) const KINDS: [&str; 14] = [
    "provider-transient",
    "provider-rate",
    "provider-quota",
    "provider-refuses-key",
    "provider-unreachable",
    "provider-unknown",
    "provider-hangs",
    "provider-refusal",
    "provider-truncated",
    "provider-garbage",
    "provider-too-large",
    "provider-empty",
    "provider-unconfigured",
    "provider-odd-call",
];

/// What a worker may do, and a jail.
pub(crate) const JAIL_KINDS: [&str; 5] =
    ["jail-unavailable", "worker-lost", "worker-other-request", "worker-dies-reading", "worker-lies"];

struct State {
    dice: Dice,
    faults_percent: u64,
    answers: u64,
    requests: u64,
    asked_for: BTreeSet<AttemptId>,
    engine: Option<Arc<SqliteStore>>,
    broken: Option<String>,
}

/// Both ports.
pub(crate) struct Provider {
    state: Mutex<State>,
    chaos: Arc<Chaos>,
}

impl Provider {
    pub(crate) fn new(dice: Dice, faults_percent: u64, chaos: Arc<Chaos>) -> Arc<Self> {
        let state = State {
            dice,
            faults_percent,
            answers: 0,
            requests: 0,
            asked_for: BTreeSet::new(),
            engine: None,
            broken: None,
        };
        Arc::new(Self { state: Mutex::new(state), chaos })
    }

    /// Looks at this store from now on, beside whoever works on it.
    pub(crate) fn look_at(&self, engine: Option<Arc<SqliteStore>>) {
        self.state.lock().unwrap().engine = engine;
    }

    pub(crate) fn calm(&self) {
        self.state.lock().unwrap().faults_percent = 0;
    }

    pub(crate) fn requests(&self) -> u64 {
        self.state.lock().unwrap().requests
    }

    /// What was wrong with a request, if anything was.
    pub(crate) fn broken(&self) -> Option<String> {
        self.state.lock().unwrap().broken.clone()
    }

    fn faulty(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let percent = state.faults_percent;
        state.dice.percent(percent)
    }

    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.state.lock().unwrap().dice.below(bound as u64)).unwrap()
    }

    /// The request belongs to an attempt that is durable, is started, and never asked before.
    fn account(&self, request: &[u8]) {
        let Some(engine) = self.state.lock().unwrap().engine.clone() else { return };
        let text = String::from_utf8_lossy(request);
        let marker = text.rfind("kanari-m").map(|at| {
            let digits: String = text[at + 8..].chars().take_while(char::is_ascii_digit).collect();
            format!("kanari-m{digits} ")
        });
        let Some(marker) = marker else { return self.breaks("a request without a person's words") };
        let filter = RunFilter { states: vec![RunState::Running], limit: 1_000, ..RunFilter::default() };
        for run in now(engine.runs(filter)).unwrap() {
            let trigger = now(engine.event(run.trigger.clone())).unwrap().unwrap();
            let said = trigger.payload::<TelegramMessage>().map(|said| said.text.unwrap_or_default());
            let said = said.or_else(|_| trigger.payload::<AgentMessage>().map(|said| said.text)).unwrap();
            if !said.contains(&marker) {
                continue;
            }
            let newest = now(engine.attempts(run.id)).unwrap().pop();
            let Some(attempt) = newest.filter(|attempt| attempt.state == AttemptState::Started) else {
                return self.breaks("a request without a started attempt");
            };
            if !self.state.lock().unwrap().asked_for.insert(attempt.id.clone()) {
                self.breaks("an attempt asked twice");
            }
            return;
        }
        self.breaks("a request without a run");
    }

    fn breaks(&self, what: &str) {
        self.state.lock().unwrap().broken.get_or_insert_with(|| what.to_owned());
    }

    fn reply(&self, api: Api) -> Option<ModelReply> {
        if !self.faulty() {
            return Some(self.good(api));
        }
        let kind = KINDS[self.below(KINDS.len())];
        if kind == "provider-unconfigured" {
            return Some(self.good(api));
        }
        self.chaos.count(kind);
        let status = |status, retry_after_seconds, body: &str| ModelReply::Status {
            status,
            retry_after_seconds,
            body: Sensitive::new(body.as_bytes().to_vec()),
        };
        Some(match kind {
            "provider-transient" => status([500, 503, 529, 408][self.below(4)], None, "{}"),
            "provider-rate" => {
                status(429, Some(2), r#"{"type":"error","error":{"type":"rate_limit_error"}}"#)
            }
            "provider-quota" => status(429, None, r#"{"error":{"code":"insufficient_quota"}}"#),
            "provider-refuses-key" => status(401, None, "{}"),
            "provider-unreachable" => ModelReply::RefusedBeforeRequest { code: "connect" },
            "provider-unknown" => ModelReply::Unknown { code: "broken-connection" },
            "provider-hangs" => return None,
            "provider-refusal" => answer(api, json!("No."), &[], "refusal"),
            "provider-truncated" => answer(api, json!(self.words()), &[], "max_tokens"),
            "provider-too-large" => status(400, None, r#"{"error":{"code":"context_length_exceeded"}}"#),
            "provider-empty" => answer(api, Value::Null, &[], "end_turn"),
            "provider-odd-call" => answer(api, json!(self.words()), &[("run_shell", json!({}))], "tool_use"),
            _ => ModelReply::Answered { body: Sensitive::new(b"<html>".to_vec()) },
        })
    }

    fn words(&self) -> String {
        let mut state = self.state.lock().unwrap();
        state.answers += 1;
        let answers = state.answers;
        let more = if state.dice.percent(4) { "long words ".repeat(900) } else { String::new() };
        let bold = if state.dice.percent(50) { " **bold**" } else { "" };
        format!("kanari-a{answers} answer{bold} {more}end")
    }

    fn good(&self, api: Api) -> ModelReply {
        let words = self.words();
        let number = self.state.lock().unwrap().answers;
        let text = format!("kanari-p{number} remembered");
        let why = "kanari-r it was asked for";
        let calls = match (api, self.below(6)) {
            (Api::AnthropicMessages, 0 | 1) => vec![(
                "request_memory_change",
                json!({
                    "operation": "append", "proposed_text": text, "reason": why, "evidence_event_ids": [],
                }),
            )],
            (Api::AnthropicMessages, 2) => vec![(
                "request_memory_change",
                json!({
                    "operation": "replace-document", "reason": why, "evidence_event_ids": [],
                    "proposed_text": format!("---\nid: memory\n---\n{text}\n"),
                }),
            )],
            (Api::AnthropicMessages, 3) => vec![(
                "submit_correction",
                json!({
                    "target_output": "latest", "replacement": text, "reason": why, "evidence_event_ids": [],
                }),
            )],
            _ => Vec::new(),
        };
        let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
        answer(api, json!(words), &calls, stop)
    }
}

/// A body of an API.
fn answer(api: Api, text: Value, calls: &[(&str, Value)], stop: &str) -> ModelReply {
    let body = match api {
        Api::AnthropicMessages => {
            let mut content: Vec<Value> =
                text.as_str().map(|text| json!({"type": "text", "text": text})).into_iter().collect();
            for (at, (name, input)) in calls.iter().enumerate() {
                content.push(
                    json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": name, "input": input}),
                );
            }
            json!({
                "type": "message", "role": "assistant", "model": "model-1", "content": content,
                "stop_reason": stop, "usage": {"input_tokens": 10, "output_tokens": 3},
            })
        }
        _ => {
            let finish = match stop {
                "end_turn" => "stop",
                "max_tokens" => "length",
                "refusal" => "content_filter",
                _ => "tool_calls",
            };
            let mut message = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                message["tool_calls"] = calls
                    .iter()
                    .map(|(name, input)| {
                        let function = json!({"name": name, "arguments": input.to_string()});
                        json!({"id": "call_1", "type": "function", "function": function})
                    })
                    .collect();
            }
            json!({
                "id": "c", "object": "chat.completion", "model": "model-1",
                "choices": [{"index": 0, "finish_reason": finish, "message": message}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
            })
        }
    };
    ModelReply::Answered { body: Sensitive::new(serde_json::to_vec(&body).unwrap()) }
}

fn api_of(provider: &str) -> Api {
    if provider == "main" { Api::AnthropicMessages } else { Api::OpenaiChat }
}

impl Model for Provider {
    fn binding(&self, provider: &str) -> Result<Binding, HeldReason> {
        if self.faulty() && self.below(4) == 0 {
            self.chaos.count("provider-unconfigured");
            return Err(HeldReason::ProviderUnconfigured);
        }
        Ok(Binding {
            provider: provider.to_owned(),
            api: api_of(provider),
            model: "model-1".to_owned(),
            compat: Compat::Standard,
            token_limit: TokenLimit::MaxCompletionTokens,
        })
    }

    fn request(
        &self,
        provider: &str,
        parent_rendered: Vec<u8>,
        worker_rendered: Vec<u8>,
    ) -> BoxFuture<'_, ModelReply> {
        let api = api_of(provider);
        Box::pin(async move {
            if parent_rendered != worker_rendered {
                return ModelReply::BytesDiffer;
            }
            if self.chaos.is_dead() {
                std::future::pending::<()>().await;
            }
            self.state.lock().unwrap().requests += 1;
            self.account(&parent_rendered);
            match self.reply(api) {
                Some(reply) => reply,
                None => std::future::pending().await,
            }
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Honest,
    Lost,
    OtherRequest,
    DiesReading,
    Lies,
}

struct SimWorker {
    behaviour: Behaviour,
    packet: Option<Packet>,
}

impl Jail for Provider {
    fn checkout(&self) -> BoxFuture<'_, Result<Box<dyn Worker>, JailError>> {
        let mut behaviour = Behaviour::Honest;
        let mut unavailable = false;
        if self.faulty() && self.below(2) == 0 {
            let kind = self.below(JAIL_KINDS.len());
            self.chaos.count(JAIL_KINDS[kind]);
            match kind {
                0 => unavailable = true,
                1 => behaviour = Behaviour::Lost,
                2 => behaviour = Behaviour::OtherRequest,
                3 => behaviour = Behaviour::DiesReading,
                _ => behaviour = Behaviour::Lies,
            }
        }
        Box::pin(std::future::ready(if unavailable {
            Err(JailError { code: "namespaces", kind: JailErrorKind::Unavailable })
        } else {
            Ok(Box::new(SimWorker { behaviour, packet: None }) as Box<dyn Worker>)
        }))
    }

    fn tier(&self) -> String {
        "full".to_owned()
    }
}

const DIED: JailError = JailError { code: "worker-died", kind: JailErrorKind::Worker };

impl Worker for SimWorker {
    fn render(&mut self, packet: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, JailError>> {
        let packet = Packet::decode(&packet).unwrap();
        let mut rendered = provider::render_request(&packet).unwrap();
        self.packet = Some(packet);
        let rendered = match self.behaviour {
            Behaviour::Lost => Err(DIED),
            Behaviour::OtherRequest => {
                rendered.push(b' ');
                Ok(rendered)
            }
            _ => Ok(rendered),
        };
        Box::pin(std::future::ready(rendered))
    }

    fn read(&mut self, answer: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, JailError>> {
        let mut result = judge(self.packet.as_ref().unwrap(), &answer);
        if self.behaviour == Behaviour::Lies
            && let Outcome::Answer { text, .. } = &mut result.outcome
        {
            *text = Some("other words".to_owned());
        }
        let read =
            if self.behaviour == Behaviour::DiesReading { Err(DIED) } else { Ok(result.encode().unwrap()) };
        Box::pin(std::future::ready(read))
    }
}
