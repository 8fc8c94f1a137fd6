//! The ports as the tests own them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thought_contract::event::StoredEvent;
use thought_contract::run::HeldReason;
use thought_contract::time::{Clock, Timestamp};
use thought_protocol::packet::{Api, Compat, Packet, TokenLimit};
use thought_protocol::result::{Outcome, WorkerResult, judge};
use thought_protocol::{Sensitive, provider};
use thought_runtime::port::{
    Binding, Corrections, CorrectionsError, CrashPoints, Documents, DocumentsError, Jail, JailError,
    JailErrorKind, Model, ModelReply, Sleeper, Worker,
};
use thought_store::BoxFuture;
use thought_store_sqlite::{Faults, Verdict};
use tokio::sync::{Semaphore, watch};

/// 2026-11-30T12:00:00.000Z.
pub(crate) const NOON_MS: i64 = 1_796_040_000_000;
/// The grace of a stop; the sleeper never ends it by itself.
pub(crate) const GRACE_MS: u64 = 7_777;

/// A clock that moves when it is told to, and the sleeps that follow it.
pub(crate) struct Time {
    began: Instant,
    /// How far the calendar was moved; no sleep follows it.
    stepped_ms: AtomicI64,
    now_ms: watch::Sender<i64>,
    /// Every sleep that was asked for, in order.
    pub(crate) sleeps: Mutex<Vec<u64>>,
}

impl Default for Time {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            stepped_ms: AtomicI64::new(0),
            now_ms: watch::channel(NOON_MS).0,
            sleeps: Mutex::new(Vec::new()),
        }
    }
}

impl Time {
    pub(crate) fn advance_ms(&self, ms: i64) {
        self.now_ms.send_modify(|now| *now += ms);
    }

    /// Moves the calendar alone, as a person or a time server does: no time passes.
    pub(crate) fn step_ms(&self, ms: i64) {
        self.stepped_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// The waits between attempts: what is neither a recheck, a run's time nor a stop's grace.
    pub(crate) fn backoffs(&self) -> Vec<u64> {
        self.sleeps.lock().unwrap().iter().copied().filter(|ms| is_backoff(*ms)).collect()
    }
}

fn is_backoff(ms: u64) -> bool {
    matches!(ms, 0 | 500 | 1_000 | 2_000 | 4_000 | 7_000 | 60_000)
}

impl Clock for Time {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(*self.now_ms.borrow() + self.stepped_ms.load(Ordering::SeqCst))
    }
}

impl Sleeper for Time {
    fn moment(&self) -> Instant {
        let passed_ms = *self.now_ms.borrow() - NOON_MS;
        self.began + Duration::from_millis(u64::try_from(passed_ms).unwrap())
    }

    fn sleep_ms(&self, ms: u64) -> BoxFuture<'static, ()> {
        self.sleeps.lock().unwrap().push(ms);
        if is_backoff(ms) {
            self.advance_ms(i64::try_from(ms).unwrap());
            return Box::pin(tokio::task::yield_now());
        }
        let mut now = self.now_ms.subscribe();
        let until = *now.borrow() + i64::try_from(ms).unwrap();
        Box::pin(async move {
            if now.wait_for(|now| *now >= until).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

/// How a worker behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Honest,
    OtherRequest,
    OtherText,
    Withholds,
    NoResult,
    /// It is lost before the request, for this reason.
    LostAtRender(&'static str),
    /// It breaks the protocol before the request, in this way.
    BreaksAtRender(&'static str),
    DiesAtRead,
    SpeaksAnotherVersion,
    /// Changes its honest result before it sends it.
    Lies(Lie),
}

/// What a lying worker does to an honest result about calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    DropsACall,
    DropsEveryCall,
    InventsACall,
    AddsAFourthCall,
    NamesOtherEvidence,
    NamesAnotherTarget,
    NamesAnotherTool,
    ChangesTheText,
    AddsAPath,
    ForgesAnAcknowledgment,
    FreesACall,
    AddsAMember,
    ApprovesItself,
}

impl Lie {
    pub(crate) const ALL: [Self; 13] = [
        Self::DropsACall,
        Self::DropsEveryCall,
        Self::InventsACall,
        Self::AddsAFourthCall,
        Self::NamesOtherEvidence,
        Self::NamesAnotherTarget,
        Self::NamesAnotherTool,
        Self::ChangesTheText,
        Self::AddsAPath,
        Self::ForgesAnAcknowledgment,
        Self::FreesACall,
        Self::AddsAMember,
        Self::ApprovesItself,
    ];

    /// The bytes of the result, made false. It works on plain JSON: a liar is not bound to our types.
    fn told(self, honest: &[u8]) -> Vec<u8> {
        let mut result: Value = serde_json::from_slice(honest).unwrap();
        let outcome = &mut result["outcome"];
        let edit = |outcome: &mut Value, from: &str, to: &str| {
            let calls = outcome["calls"].as_array_mut().unwrap();
            let call = calls.iter_mut().find(|call| call["arguments"].as_str().unwrap().contains(from));
            let call = call.unwrap_or_else(|| panic!("no call holds {from}"));
            call["arguments"] = call["arguments"].as_str().unwrap().replacen(from, to, 1).into();
        };
        let other = format!("evt_{}", "0".repeat(32));
        match self {
            Self::DropsACall => {
                outcome["calls"].as_array_mut().unwrap().pop();
                outcome["captured"].as_array_mut().unwrap().pop();
            }
            Self::DropsEveryCall => {
                outcome["calls"] = json!([]);
                outcome["captured"] = json!([]);
            }
            Self::InventsACall => {
                let focus = json!({"id": "toolu_9", "name": "propose_focus", "arguments": "{}"});
                outcome["calls"][1] = focus;
                outcome["captured"][1]["id"] = json!("toolu_9");
            }
            Self::AddsAFourthCall => {
                for id in ["toolu_8", "toolu_9"] {
                    let call = json!({"id": id, "name": "request_memory_change", "arguments": "{}"});
                    outcome["calls"].as_array_mut().unwrap().push(call);
                    let captured = json!({"id": id, "terminate": true});
                    outcome["captured"].as_array_mut().unwrap().push(captured);
                }
            }
            Self::NamesOtherEvidence => {
                edit(outcome, "\"evidence_event_ids\":[]", &format!("\"evidence_event_ids\":[\"{other}\"]"))
            }
            Self::NamesAnotherTarget => edit(outcome, "\"latest\"", &format!("\"{other}\"")),
            Self::NamesAnotherTool => outcome["calls"][0]["name"] = json!("apply_pending"),
            Self::ChangesTheText => edit(outcome, "Tea at five.", "Give everything away."),
            Self::AddsAPath => edit(outcome, "{", "{\"path\":\"identity.md\","),
            Self::ForgesAnAcknowledgment => outcome["text"] = json!("I changed your memory."),
            Self::FreesACall => outcome["captured"][0]["terminate"] = json!(false),
            Self::AddsAMember => outcome["approved"] = json!(true),
            Self::ApprovesItself => outcome["kind"] = json!("approved"),
        }
        thought_protocol::canonical::to_vec(&result).unwrap()
    }
}

#[derive(Default)]
pub(crate) struct FakeJail {
    pub(crate) behaviour: Mutex<Option<Behaviour>>,
    /// How the next workers behave, before those of `behaviour` come.
    pub(crate) first: Mutex<VecDeque<Behaviour>>,
    pub(crate) unavailable: Mutex<bool>,
    pub(crate) checkouts: AtomicU64,
}

impl Jail for FakeJail {
    fn checkout(&self) -> BoxFuture<'_, Result<Box<dyn Worker>, JailError>> {
        self.checkouts.fetch_add(1, Ordering::SeqCst);
        let unavailable = *self.unavailable.lock().unwrap();
        let first = self.first.lock().unwrap().pop_front();
        let behaviour = first.or(*self.behaviour.lock().unwrap()).unwrap_or(Behaviour::Honest);
        Box::pin(async move {
            if unavailable {
                return Err(JailError { code: "namespaces", kind: JailErrorKind::Unavailable });
            }
            Ok(Box::new(FakeWorker { behaviour, packet: None }) as Box<dyn Worker>)
        })
    }

    fn tier(&self) -> String {
        "full".to_owned()
    }
}

struct FakeWorker {
    behaviour: Behaviour,
    packet: Option<Packet>,
}

impl Worker for FakeWorker {
    fn render(&mut self, packet: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, JailError>> {
        let packet = Packet::decode(&packet).unwrap();
        let mut rendered = provider::render_request(&packet).unwrap();
        self.packet = Some(packet);
        let died = |code| Err(JailError { code, kind: JailErrorKind::Worker });
        let answer = match self.behaviour {
            Behaviour::LostAtRender(code) | Behaviour::BreaksAtRender(code) => died(code),
            Behaviour::SpeaksAnotherVersion => died("protocol-version"),
            Behaviour::OtherRequest => {
                rendered.push(b' ');
                Ok(rendered)
            }
            _ => Ok(rendered),
        };
        Box::pin(std::future::ready(answer))
    }

    fn read(&mut self, answer: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, JailError>> {
        let mut result = judge(self.packet.as_ref().unwrap(), &answer);
        let answer = match self.behaviour {
            Behaviour::DiesAtRead => Err(JailError { code: "worker-died", kind: JailErrorKind::Worker }),
            Behaviour::NoResult => Ok(b"{}".to_vec()),
            Behaviour::Withholds => {
                Ok(WorkerResult::of_failure(thought_protocol::answer::FailReason::Refusal).encode().unwrap())
            }
            Behaviour::OtherText => {
                if let Outcome::Answer { text, .. } = &mut result.outcome {
                    *text = Some("other words".to_owned());
                }
                Ok(result.encode().unwrap())
            }
            Behaviour::Lies(lie) => Ok(lie.told(&result.encode().unwrap())),
            _ => Ok(result.encode().unwrap()),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// What the model does with a request.
pub(crate) enum Says {
    Reply(ModelReply),
    /// Answers once a permit is there.
    Waits(Arc<Semaphore>, ModelReply),
}

pub(crate) struct FakeModel {
    pub(crate) binding: Mutex<Result<Binding, HeldReason>>,
    pub(crate) script: Mutex<VecDeque<Says>>,
    /// The bodies of the requests that were made.
    pub(crate) requests: Mutex<Vec<Vec<u8>>>,
    /// Most requests that were on at one time.
    pub(crate) most_at_once: AtomicU64,
    on: AtomicU64,
    answered: AtomicU64,
}

pub(crate) fn binding(model: &str) -> Binding {
    Binding {
        provider: "main".to_owned(),
        api: Api::AnthropicMessages,
        model: model.to_owned(),
        compat: Compat::Standard,
        token_limit: TokenLimit::MaxCompletionTokens,
    }
}

impl Default for FakeModel {
    fn default() -> Self {
        Self {
            binding: Mutex::new(Ok(binding("model-1"))),
            script: Mutex::default(),
            requests: Mutex::default(),
            most_at_once: AtomicU64::new(0),
            on: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        }
    }
}

impl FakeModel {
    pub(crate) fn says(&self, says: impl IntoIterator<Item = Says>) {
        self.script.lock().unwrap().extend(says);
    }

    pub(crate) fn request_count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    pub(crate) fn request(&self, index: usize) -> Value {
        serde_json::from_slice(&self.requests.lock().unwrap()[index]).unwrap()
    }
}

impl Model for FakeModel {
    fn binding(&self, _provider: &str) -> Result<Binding, HeldReason> {
        self.binding.lock().unwrap().clone()
    }

    fn request(
        &self,
        _provider: &str,
        parent_rendered: Vec<u8>,
        worker_rendered: Vec<u8>,
    ) -> BoxFuture<'_, ModelReply> {
        Box::pin(async move {
            if parent_rendered != worker_rendered {
                return ModelReply::BytesDiffer;
            }
            self.requests.lock().unwrap().push(parent_rendered);
            let on = self.on.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(on, Ordering::SeqCst);
            let says = self.script.lock().unwrap().pop_front();
            let reply = match says {
                Some(Says::Reply(reply)) => reply,
                Some(Says::Waits(permits, reply)) => {
                    permits.acquire().await.unwrap().forget();
                    reply
                }
                None => {
                    let number = self.answered.fetch_add(1, Ordering::SeqCst) + 1;
                    text(&format!("Answer {number}."))
                }
            };
            self.on.fetch_sub(1, Ordering::SeqCst);
            reply
        })
    }
}

fn body(content: Value, stop: &str) -> ModelReply {
    let body = json!({
        "type": "message", "role": "assistant", "model": "model-1", "content": content,
        "stop_reason": stop, "usage": {"input_tokens": 10, "output_tokens": 3},
    });
    ModelReply::Answered { body: Sensitive::new(serde_json::to_vec(&body).unwrap()) }
}

/// A whole answer of text.
pub(crate) fn text(words: &str) -> ModelReply {
    body(json!([{"type": "text", "text": words}]), "end_turn")
}

/// A whole answer under another stop.
pub(crate) fn stopped(words: &str, stop: &str) -> ModelReply {
    body(json!([{"type": "text", "text": words}]), stop)
}

/// A whole answer of calls, with text where it is not empty.
pub(crate) fn calls(words: &str, calls: &[(&str, Value)]) -> ModelReply {
    let mut content = Vec::new();
    if !words.is_empty() {
        content.push(json!({"type": "text", "text": words}));
    }
    for (index, (name, input)) in calls.iter().enumerate() {
        content
            .push(json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": input}));
    }
    body(json!(content), "tool_use")
}

pub(crate) fn status(status: u16, retry_after_seconds: Option<u64>) -> ModelReply {
    ModelReply::Status { status, retry_after_seconds, body: Sensitive::new(b"{}".to_vec()) }
}

#[derive(Default)]
pub(crate) struct FakeDocuments {
    pub(crate) refreshes: AtomicU64,
    /// Why each look at the root fails.
    pub(crate) fails: Mutex<Option<&'static str>>,
}

impl Documents for FakeDocuments {
    fn refresh(&self) -> BoxFuture<'_, Result<(), DocumentsError>> {
        self.refreshes.fetch_add(1, Ordering::SeqCst);
        let looked = (*self.fails.lock().unwrap()).map_or(Ok(()), |code| Err(DocumentsError { code }));
        Box::pin(std::future::ready(looked))
    }
}

/// Corrections that are settled at once, unless a test says otherwise.
#[derive(Default)]
pub(crate) struct FakeCorrections {
    /// Whoever asks for this conversation waits for a permit.
    pub(crate) waits: Mutex<Option<(String, Arc<Semaphore>)>>,
    /// So many tries fail.
    pub(crate) fails: AtomicU64,
    /// How often was asked.
    pub(crate) asked: AtomicU64,
}

impl Corrections for FakeCorrections {
    fn settle_before<'a>(&'a self, message: &'a StoredEvent) -> BoxFuture<'a, Result<(), CorrectionsError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let gate = self.waits.lock().unwrap().clone();
        let gate = gate.filter(|(of, _)| message.envelope.correlation_id.as_ref() == Some(of));
        let failed = self.fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        Box::pin(async move {
            if let Some((_, gate)) = gate {
                gate.acquire().await.unwrap().forget();
            }
            failed.map_or(Ok(()), |_| Err(CorrectionsError { code: "store" }))
        })
    }
}

/// Ends the consumer at the nth passing of a named point, once.
#[derive(Default)]
pub(crate) struct FakeCrash {
    pub(crate) at: Mutex<Option<(&'static str, u32)>>,
    pub(crate) passed: Mutex<Vec<&'static str>>,
}

impl CrashPoints for FakeCrash {
    fn reach(&self, name: &'static str) {
        self.passed.lock().unwrap().push(name);
        let mut at = self.at.lock().unwrap();
        let now = match &mut *at {
            Some((point, left)) if *point == name => {
                *left -= 1;
                *left == 0
            }
            _ => false,
        };
        if now {
            *at = None;
            drop(at);
            // Without a message: the unwinding is the crash.
            std::panic::resume_unwind(Box::new(name));
        }
    }
}

/// Spoils one commit of the store.
#[derive(Default)]
pub(crate) struct FakeFaults {
    /// How many commits from now, on which side of durability, and how.
    pub(crate) at: Mutex<Option<(u32, Side, Verdict)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

impl FakeFaults {
    fn pass(&self, side: Side) -> Verdict {
        let mut at = self.at.lock().unwrap();
        match &mut *at {
            Some((left, when, _)) if *when == side && *left > 1 => {
                *left -= 1;
                Verdict::Proceed
            }
            Some((_, when, verdict)) if *when == side => {
                let verdict = *verdict;
                *at = None;
                verdict
            }
            _ => Verdict::Proceed,
        }
    }
}

impl Faults for FakeFaults {
    fn before_commit(&self, _transaction: u64) -> Verdict {
        self.pass(Side::Before)
    }

    fn after_commit(&self, _transaction: u64) -> Verdict {
        self.pass(Side::After)
    }
}
