//! Whether the provider can be reached, for the doctor.
//!
//! Owns a single `GET` of the list of models. It must never make a model request, and never claims more than it saw:
//! a list that is cut, paged or of another shape tells nothing about a model.

use serde_json::Value;
use thought_protocol::packet::Api;

use crate::client::{Broker, read_whole};
use crate::failure::{self, Failure};
use crate::limits::{MODEL_LIST_BYTES_MAX, REACHABILITY_TIMEOUT_MAX};
use crate::reply::{BeforeReason, UnknownReason};

/// Whether the configured model stands in the provider's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelListing {
    /// It does, by its name or as the alias of a dated or tagged name.
    Listed,
    /// The whole list was read and it does not.
    NotListed,
    /// The list was not whole, too long, or of an unknown shape.
    CannotTell,
}

/// What the check saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reachability {
    /// The provider gave its list of models.
    Reachable {
        /// Whether the model is in it.
        model: ModelListing,
    },
    /// The provider answered that the key is missing or not accepted (401, 403).
    KeyRefused {
        /// The HTTP status.
        status: u16,
    },
    /// Something answers there, and does not list models.
    OtherStatus {
        /// The HTTP status.
        status: u16,
    },
    /// No connection came about.
    Unreachable {
        /// Why.
        reason: BeforeReason,
    },
    /// A connection came about, and no answer.
    NoAnswer {
        /// Why.
        reason: UnknownReason,
    },
}

impl Broker {
    /// Connects, asks for the list of models, and looks for `model` in it. No model request is made, and
    /// [`Broker::requests_made`] does not count it. Takes at most [`REACHABILITY_TIMEOUT_MAX`].
    pub async fn reachable(&self, model: &str) -> Reachability {
        let Ok(headers) = self.headers() else {
            return Reachability::Unreachable { reason: BeforeReason::NotBuilt };
        };
        let sent = self
            .http
            .get(self.endpoint.models_url().clone())
            .headers(headers)
            .timeout(self.endpoint.timeout().min(REACHABILITY_TIMEOUT_MAX))
            .send()
            .await;
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                return match failure::of_sending(&error) {
                    Failure::Before(reason) => Reachability::Unreachable { reason },
                    Failure::Unknown(reason) => Reachability::NoAnswer { reason },
                };
            }
        };
        match response.status().as_u16() {
            200 => {}
            status @ (401 | 403) => return Reachability::KeyRefused { status },
            status => return Reachability::OtherStatus { status },
        }
        let model = match read_whole(response, MODEL_LIST_BYTES_MAX).await {
            Ok(list) => listing(self.endpoint.api(), &list, model),
            Err(UnknownReason::BodyTooLarge) => ModelListing::CannotTell,
            Err(reason) => return Reachability::NoAnswer { reason },
        };
        Reachability::Reachable { model }
    }
}

/// Looks for a model in `{"data": [{"id": …}, …]}`, the shape that both APIs and the local servers share.
fn listing(api: Api, list: &[u8], model: &str) -> ModelListing {
    let Ok(list) = serde_json::from_slice::<Value>(list) else {
        return ModelListing::CannotTell;
    };
    let Some(entries) = list.get("data").and_then(Value::as_array) else {
        return ModelListing::CannotTell;
    };
    let ids: Option<Vec<&str>> =
        entries.iter().map(|entry| entry.get("id").and_then(Value::as_str)).collect();
    let Some(ids) = ids else {
        return ModelListing::CannotTell;
    };
    if ids.iter().any(|id| names(api, id, model)) {
        return ModelListing::Listed;
    }
    if list.get("has_more").and_then(Value::as_bool) == Some(true) {
        return ModelListing::CannotTell;
    }
    ModelListing::NotListed
}

/// Whether a listed id is what `model` stands for: itself; in Anthropic's list a name that ends in a date; in the list
/// of a local server the tag `latest`.
fn names(api: Api, id: &str, model: &str) -> bool {
    let Some(rest) = id.strip_prefix(model) else {
        return false;
    };
    if rest.is_empty() {
        return true;
    }
    match api {
        Api::AnthropicMessages => rest
            .strip_prefix('-')
            .is_some_and(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit())),
        Api::OpenaiChat => rest == ":latest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_name_date_or_tag() {
        let list = br#"{"data":[{"id":"small-20250101"},{"id":"big"},{"id":"llama:latest"}]}"#;
        let anthropic = |model| listing(Api::AnthropicMessages, list, model);
        let openai = |model| listing(Api::OpenaiChat, list, model);
        assert_eq!(anthropic("big"), ModelListing::Listed);
        assert_eq!(anthropic("small"), ModelListing::Listed);
        assert_eq!(anthropic("small-20250101"), ModelListing::Listed);
        assert_eq!(anthropic("smal"), ModelListing::NotListed);
        assert_eq!(anthropic("llama"), ModelListing::NotListed);
        assert_eq!(openai("llama"), ModelListing::Listed);
        assert_eq!(openai("small"), ModelListing::NotListed);
        assert_eq!(openai(""), ModelListing::NotListed);
    }

    #[test]
    fn a_list_that_is_not_whole_or_not_one_tells_nothing() {
        for list in [
            &br#"{"data":[{"id":"other"}],"has_more":true}"#[..],
            br#"{"data":{}}"#,
            br#"{"data":[{"name":"big"}]}"#,
            br#"{"models":[]}"#,
            b"<html>",
            b"",
            &[b'['; 4096],
        ] {
            assert_eq!(listing(Api::OpenaiChat, list, "big"), ModelListing::CannotTell);
        }
        let paged = br#"{"data":[{"id":"big"}],"has_more":true}"#;
        assert_eq!(listing(Api::OpenaiChat, paged, "big"), ModelListing::Listed);
    }
}
