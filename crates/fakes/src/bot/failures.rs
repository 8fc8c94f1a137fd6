//! The ways in which a call can be made to fail.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Outcome, Response};

/// What becomes of one call, instead of the usual.
#[derive(Clone)]
pub enum Failure {
    /// 429 with `parameters.retry_after` in seconds. Nothing is done.
    TooManyRequests {
        /// Seconds to wait.
        retry_after_seconds: u32,
    },
    /// An error in Telegram's own form. Nothing is done.
    Refused {
        /// HTTP status and `error_code`.
        code: u16,
        /// The description.
        description: String,
    },
    /// 400 with `parameters.migrate_to_chat_id`: the group became a supergroup. Nothing is done.
    Migrated {
        /// The supergroup's id.
        to_chat_id: i64,
    },
    /// 502 with an HTML page, as from a proxy in front. Nothing is done.
    BadGateway,
    /// The connection ends without an answer. Nothing is done.
    DropBefore,
    /// The call is carried out and recorded, then the connection ends without an answer.
    DropAfter,
    /// Nothing is done and nothing is answered until the client goes.
    HangBefore,
    /// The call is carried out and recorded, then nothing is answered until the client goes.
    HangAfter,
    /// The call is carried out and recorded, then a 200 that is not JSON is answered.
    InvalidJson,
    /// The call is carried out and recorded, then `ok` is answered and no result.
    WithoutResult,
    /// The call is carried out and recorded; its answer breaks off in the middle.
    Truncated,
    /// The call is carried out after this time.
    Delay(Duration),
}

impl Failure {
    /// 403: the person blocked the bot.
    #[must_use]
    pub fn blocked() -> Self {
        Self::Refused { code: 403, description: "Forbidden: bot was blocked by the user".to_owned() }
    }

    /// 500 in Telegram's own form.
    #[must_use]
    pub fn internal() -> Self {
        Self::Refused { code: 500, description: "Internal Server Error".to_owned() }
    }

    /// 400 as for entities that cannot be read.
    #[must_use]
    pub fn cannot_parse_entities() -> Self {
        Self::Refused {
            code: 400,
            description: "Bad Request: can't parse entities: unsupported start tag".to_owned(),
        }
    }

    /// The outcome, where the call is not to be carried out.
    pub(crate) fn instead(&self) -> Option<Outcome> {
        match self {
            Self::TooManyRequests { retry_after_seconds: wait } => Some(Outcome::Respond(
                error(
                    429,
                    &format!("Too Many Requests: retry after {wait}"),
                    Some(json!({"retry_after": wait})),
                )
                .with("retry-after", &wait.to_string()),
            )),
            Self::Refused { code, description } => Some(Outcome::Respond(error(*code, description, None))),
            Self::Migrated { to_chat_id } => Some(Outcome::Respond(error(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                Some(json!({"migrate_to_chat_id": to_chat_id})),
            ))),
            Self::BadGateway => {
                let page = b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n</html>\r\n".to_vec();
                Some(Outcome::Respond(Response::of(502, "text/html", page)))
            }
            Self::DropBefore => Some(Outcome::Close),
            Self::HangBefore => Some(Outcome::RawThenHang(Vec::new())),
            Self::DropAfter
            | Self::HangAfter
            | Self::InvalidJson
            | Self::WithoutResult
            | Self::Truncated
            | Self::Delay(_) => None,
        }
    }

    /// The outcome in place of the answer of a call that was carried out.
    pub(crate) fn afterwards(&self, response: Response) -> Outcome {
        match self {
            Self::DropAfter => Outcome::Close,
            Self::HangAfter => Outcome::RawThenHang(Vec::new()),
            Self::InvalidJson => {
                Outcome::Respond(Response::of(200, "application/json", b"{\"ok\":true,\"result\":".to_vec()))
            }
            Self::WithoutResult => Outcome::Respond(Response::json(200, &json!({"ok": true}))),
            Self::Truncated => {
                let mut bytes = response.bytes();
                bytes.truncate(bytes.len().saturating_sub(response.body.len().div_ceil(2)));
                Outcome::RawThenClose(bytes)
            }
            _ => Outcome::Respond(response),
        }
    }
}

/// An error in Telegram's form.
pub(crate) fn error(code: u16, description: &str, parameters: Option<Value>) -> Response {
    let mut body = json!({"ok": false, "error_code": code, "description": description});
    if let Some(parameters) = parameters {
        body["parameters"] = parameters;
    }
    Response::json(code, &body)
}
