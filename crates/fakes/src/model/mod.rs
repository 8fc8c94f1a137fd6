//! A model server that speaks Anthropic Messages and OpenAI chat completions on one port.
//!
//! It judges requests as the vendors do, records each with its bytes, and answers what was scripted: in the API
//! that the request came by, or with any failure that a network can bring. It never sends a request itself.

mod anthropic;
mod check;
mod config;
mod demo;
mod openai;
mod render;
mod reply;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

pub use config::{ContentBesideCalls, KnownModels, ModelConfig, RoleOrder, TokenLimit, Validation};
pub use demo::demo_brain;
pub use reply::{Answer, AnsweredCall, Arguments, Reply};

use crate::error::Error;
use crate::http::{Begin, Handler, Outcome, Request, Response, Server};
use crate::limits::REQUESTS_KEPT_MAX;
use crate::record::{Kept, Watched};
use check::Refusal;

/// Which API a request came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `POST /v1/messages`.
    Anthropic,
    /// `POST /v1/chat/completions` or `/chat/completions`.
    OpenAi,
    /// Anything else: lists of models, unknown paths.
    Other,
}

/// A request as it arrived.
#[derive(Clone)]
pub struct RecordedRequest {
    /// By which API.
    pub api: Api,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// Names in lower case, in order, repetitions kept.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
    /// The body as JSON; null when it is none.
    pub json: Value,
    /// The connection it came by, counted from 1.
    pub connection: u64,
    /// Why it was refused, if it was.
    pub refusal: Option<String>,
}

impl RecordedRequest {
    /// The first value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for RecordedRequest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RecordedRequest")
            .field("api", &self.api)
            .field("path", &self.path)
            .field("body_bytes", &self.body.len())
            .field("connection", &self.connection)
            .field("refused", &self.refusal.is_some())
            .finish_non_exhaustive()
    }
}

type Brain = Arc<dyn Fn(&RecordedRequest) -> Reply + Send + Sync>;

struct State {
    script: VecDeque<Reply>,
    brain: Brain,
    requests: Kept<RecordedRequest>,
    others: Kept<RecordedRequest>,
    connections: usize,
    begun: usize,
    answers: usize,
}

struct Shared {
    config: ModelConfig,
    state: Watched<State>,
}

/// A running model server; it ends with this value. All methods may be called from any thread.
pub struct ModelServer {
    shared: Arc<Shared>,
    server: Server,
}

impl ModelServer {
    /// Starts on a free loopback port, on the current tokio runtime. Until something is scripted it answers `Hello.`
    ///
    /// # Errors
    /// [`Error::Bind`] when no port can be had.
    pub async fn start(config: ModelConfig) -> Result<Self, Error> {
        let state = State {
            script: VecDeque::new(),
            brain: Arc::new(|_| Reply::Text("Hello.".to_owned())),
            requests: Kept::new(REQUESTS_KEPT_MAX),
            others: Kept::new(REQUESTS_KEPT_MAX),
            connections: 0,
            begun: 0,
            answers: 0,
        };
        let shared = Arc::new(Shared { config, state: Watched::new(state) });
        let server = Server::start(Arc::clone(&shared)).await?;
        Ok(Self { shared, server })
    }

    /// `http://127.0.0.1:<port>`, the root of the Anthropic API.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// `http://127.0.0.1:<port>/v1`, the root of the OpenAI API.
    #[must_use]
    pub fn openai_base_url(&self) -> String {
        format!("{}/v1", self.base_url())
    }

    /// Adds replies to the queue; each answers one request that is not refused.
    pub fn script(&self, replies: Vec<Reply>) {
        self.shared.state.change(|state| state.script.extend(replies));
    }

    /// How many scripted replies are left.
    #[must_use]
    pub fn script_left(&self) -> usize {
        self.shared.state.lock().script.len()
    }

    /// What answers when the queue is empty.
    pub fn set_default_reply(&self, reply: impl Fn(&RecordedRequest) -> Reply + Send + Sync + 'static) {
        self.shared.state.change(|state| state.brain = Arc::new(reply));
    }

    /// Every request to one of the two APIs that was read whole, refused ones too, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.state.lock().requests.all()
    }

    /// How many there were.
    #[must_use]
    pub fn request_count(&self) -> usize {
        self.shared.state.lock().requests.total()
    }

    /// Every other request: lists of models, unknown paths.
    #[must_use]
    pub fn other_requests(&self) -> Vec<RecordedRequest> {
        self.shared.state.lock().others.all()
    }

    /// The reasons of all refusals, in order. An empty list means: every request would have pleased the vendor.
    #[must_use]
    pub fn refusals(&self) -> Vec<String> {
        let state = self.shared.state.lock();
        state.requests.iter().filter_map(|request| request.refusal.clone()).collect()
    }

    /// How many TCP connections were accepted, used or not.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.shared.state.lock().connections
    }

    /// How many requests began (their first byte arrived), read or not.
    #[must_use]
    pub fn begun_count(&self) -> usize {
        self.shared.state.lock().begun
    }

    /// Waits until at least `count` requests were read, and returns them.
    ///
    /// # Errors
    /// [`Error::WaitRanOut`].
    pub async fn wait_for_requests(
        &self,
        count: usize,
        timeout: Duration,
    ) -> Result<Vec<RecordedRequest>, Error> {
        self.shared.state.wait_for("model requests", count, timeout, |state| state.requests.total()).await?;
        Ok(self.requests())
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ModelServer").field("address", &self.server.address).finish_non_exhaustive()
    }
}

impl Handler for Shared {
    fn accepted(&self) {
        self.state.change(|state| state.connections += 1);
    }

    fn begun(&self) -> Begin {
        self.state.change(|state| {
            state.begun += 1;
            if matches!(state.script.front(), Some(Reply::DropBeforeRead)) {
                state.script.pop_front();
                return Begin::Drop;
            }
            Begin::Read
        })
    }

    async fn handle(&self, request: Request) -> Outcome {
        let path = request.path.trim_end_matches('/');
        let api = match path {
            "/v1/messages" => Api::Anthropic,
            "/v1/chat/completions" | "/chat/completions" => Api::OpenAi,
            _ => return self.other(&request, path),
        };
        if request.method != "POST" {
            self.state.change(|state| state.others.push(recorded(Api::Other, &request, None)));
            return Outcome::Respond(self.refused(
                api,
                &Refusal::of(405, "invalid_request_error", "Method Not Allowed"),
                0,
            ));
        }
        let refusal = match self.config.validation {
            Validation::Strict => self.judge(api, &request).err(),
            Validation::Off => None,
        };
        let record = recorded(api, &request, refusal.as_ref().map(|refusal| refusal.message.clone()));
        let (number, scripted, brain) = self.state.change(|state| {
            state.requests.push(record.clone());
            state.answers += 1;
            let scripted = if refusal.is_some() { None } else { state.script.pop_front() };
            (state.answers, scripted, Arc::clone(&state.brain))
        });
        if let Some(refusal) = refusal {
            return Outcome::Respond(self.refused(api, &refusal, number));
        }
        let reply = scripted.unwrap_or_else(|| brain(&record));
        answer(reply, &record, number).await
    }
}

fn recorded(api: Api, request: &Request, refusal: Option<String>) -> RecordedRequest {
    RecordedRequest {
        api,
        method: request.method.clone(),
        path: request.path.clone(),
        headers: request.headers.clone(),
        body: request.body.clone(),
        json: serde_json::from_slice(&request.body).unwrap_or(Value::Null),
        connection: request.connection,
        refusal,
    }
}

impl Shared {
    fn judge(&self, api: Api, request: &Request) -> Result<(), Refusal> {
        match api {
            Api::OpenAi => openai::check_headers(&self.config, request)?,
            Api::Anthropic | Api::Other => anthropic::check_headers(&self.config, request)?,
        }
        let content_type = request.header("content-type").unwrap_or("");
        if content_type
            .split(';')
            .next()
            .is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("application/json"))
        {
            return Err(Refusal::invalid("content-type: must be application/json"));
        }
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            return Err(Refusal::invalid("The request body is not valid JSON"));
        };
        match api {
            Api::OpenAi => openai::check_body(&self.config, &body),
            Api::Anthropic | Api::Other => anthropic::check_body(&self.config, request, &body),
        }
    }

    fn refused(&self, api: Api, refusal: &Refusal, number: usize) -> Response {
        let body = match api {
            Api::OpenAi => {
                openai::error_body(refusal.kind, refusal.code, refusal.param.as_deref(), &refusal.message)
            }
            Api::Anthropic | Api::Other => {
                anthropic::error_body(refusal.kind, refusal.code, &refusal.message, &request_id(number))
            }
        };
        Response::json(refusal.status, &body).with("request-id", &request_id(number))
    }

    /// Lists of models, and 404 for the rest.
    fn other(&self, request: &Request, path: &str) -> Outcome {
        self.state.change(|state| state.others.push(recorded(Api::Other, request, None)));
        let names = self.config.models.names();
        let by_anthropic = request.header("anthropic-version").is_some();
        let checked = match (path, by_anthropic) {
            ("/v1/models", true) => anthropic::check_headers(&self.config, request),
            ("/v1/models" | "/models", _) => openai::check_headers(&self.config, request),
            _ => Ok(()),
        };
        if let Err(refusal) = checked {
            let api = if by_anthropic { Api::Anthropic } else { Api::OpenAi };
            return Outcome::Respond(self.refused(api, &refusal, 0));
        }
        let body = match (request.method.as_str(), path) {
            ("GET", "/v1/models") if by_anthropic => json!({
                "data": names.iter().map(|name| json!({
                    "type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z",
                })).collect::<Vec<_>>(),
                "has_more": false,
                "first_id": names.first(),
                "last_id": names.last(),
            }),
            ("GET", "/v1/models" | "/models") => json!({
                "object": "list",
                "data": names.iter().map(|name| json!({
                    "id": name, "object": "model", "created": 1_796_000_000, "owned_by": "system",
                })).collect::<Vec<_>>(),
            }),
            ("GET", "/api/tags") => json!({
                "models": names.iter().map(|name| json!({
                    "name": name, "model": name, "modified_at": "2026-01-01T00:00:00Z", "size": 1,
                    "digest": "0".repeat(64), "details": {"format": "gguf", "family": "fake"},
                })).collect::<Vec<_>>(),
            }),
            _ => {
                let refusal = Refusal::of(404, "not_found_error", "Not Found");
                let api = if by_anthropic { Api::Anthropic } else { Api::OpenAi };
                return Outcome::Respond(self.refused(api, &refusal, 0));
            }
        };
        Outcome::Respond(Response::json(200, &body))
    }
}

fn request_id(number: usize) -> String {
    format!("req_01{number:022}")
}

async fn answer(reply: Reply, request: &RecordedRequest, number: usize) -> Outcome {
    let said = match reply {
        Reply::Text(text) => Answer::text(text),
        Reply::Calls { text, calls } => {
            Answer::calls(text, calls.into_iter().map(|(name, arguments)| (name, Arguments::Json(arguments))))
        }
        Reply::RawCalls { text, calls } => {
            Answer::calls(text, calls.into_iter().map(|(name, arguments)| (name, Arguments::Raw(arguments))))
        }
        Reply::Thinking { thinking, text } => Answer { thinking: Some(thinking), ..Answer::text(text) },
        Reply::Refusal { text } => Answer { refusal: Some(text), ..Answer::default() },
        Reply::ContentFilter => Answer { stop: Some("content_filter".to_owned()), ..Answer::default() },
        Reply::LengthStop { text } => Answer { stop: Some("length".to_owned()), ..Answer::text(text) },
        Reply::Answer(said) => said,
        Reply::SlowText(pause, text) => {
            tokio::time::sleep(pause).await;
            Answer::text(text)
        }
        Reply::Huge(bytes) => Answer::text("x".repeat(bytes)),
        Reply::Truncated => {
            return Outcome::RawThenClose(half(&success(&Answer::text("Half of this"), request, number)));
        }
        Reply::Stalled => {
            return Outcome::RawThenHang(half(&success(&Answer::text("Half of this"), request, number)));
        }
        Reply::DropBeforeRead | Reply::DropAfterRead => return Outcome::Close,
        Reply::Hang => return Outcome::RawThenHang(Vec::new()),
        Reply::RawBody { status, headers, body } => {
            return Outcome::Respond(Response { status, headers, body });
        }
        Reply::Redirect307(address) => {
            let response = Response { status: 307, headers: Vec::new(), body: Vec::new() };
            return Outcome::Respond(response.with("location", &address));
        }
        Reply::Status { status, vendor_error_type, code, message, retry_after } => {
            let response = vendor_error(request, number, status, vendor_error_type, code, &message);
            return Outcome::Respond(match retry_after {
                Some(value) => response.with("retry-after", &value),
                None => response,
            });
        }
    };
    Outcome::Respond(success(&said, request, number))
}

fn success(said: &Answer, request: &RecordedRequest, number: usize) -> Response {
    Response::of(200, "application/json", render::body(said, request, number))
        .with("request-id", &request_id(number))
}

/// The head, which declares the whole length, and the first half of the body.
fn half(response: &Response) -> Vec<u8> {
    let mut bytes = response.bytes();
    bytes.truncate(bytes.len() - response.body.len().div_ceil(2));
    bytes
}

fn vendor_error(
    request: &RecordedRequest,
    number: usize,
    status: u16,
    kind: Option<String>,
    code: Option<String>,
    message: &str,
) -> Response {
    let body = match request.api {
        Api::OpenAi => {
            let (usual, usual_code) = openai::usual_type(status);
            let code = if kind.is_some() { code.as_deref() } else { code.as_deref().or(usual_code) };
            openai::error_body(kind.as_deref().unwrap_or(usual), code, None, message)
        }
        Api::Anthropic | Api::Other => {
            let kind = kind.as_deref().unwrap_or_else(|| anthropic::usual_type(status));
            anthropic::error_body(kind, code.as_deref(), message, &request_id(number))
        }
    };
    Response::json(status, &body).with("request-id", &request_id(number))
}
