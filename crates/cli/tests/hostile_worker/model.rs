//! The model and the documents, as the tests own them.

use std::sync::Mutex;

use serde_json::{Value, json};
use thought_contract::run::HeldReason;
use thought_protocol::Sensitive;
use thought_protocol::packet::{Api, Compat, TokenLimit};
use thought_runtime::port::{Binding, Documents, DocumentsError, Model, ModelReply};
use thought_store::BoxFuture;

/// A word that stands in every answer and in no log.
pub(crate) const ANSWERED: &str = "quetzal-answered";

/// Says one thing, and counts how often it was asked.
#[derive(Default)]
pub(crate) struct OneAnswer {
    pub(crate) content: Mutex<Value>,
    pub(crate) requests: Mutex<u32>,
}

impl OneAnswer {
    /// From now on it says text.
    pub(crate) fn says_text(&self) {
        *self.content.lock().unwrap() = json!([{"type": "text", "text": format!("Yes, {ANSWERED}.")}]);
    }

    /// From now on it makes a call.
    pub(crate) fn makes_a_call(&self) {
        let input = json!({
            "operation": "append", "proposed_text": ANSWERED, "reason": "It was asked for.", "evidence_event_ids": [],
        });
        let call =
            json!({"type": "tool_use", "id": "toolu_0", "name": "request_memory_change", "input": input});
        *self.content.lock().unwrap() = json!([call]);
    }
}

impl Model for OneAnswer {
    fn binding(&self, provider: &str) -> Result<Binding, HeldReason> {
        Ok(Binding {
            provider: provider.to_owned(),
            api: Api::AnthropicMessages,
            model: "model-1".to_owned(),
            compat: Compat::Standard,
            token_limit: TokenLimit::MaxCompletionTokens,
        })
    }

    fn request(&self, _provider: &str, parent: Vec<u8>, worker: Vec<u8>) -> BoxFuture<'_, ModelReply> {
        assert!(parent == worker, "bytes that differ must not come this far");
        *self.requests.lock().unwrap() += 1;
        let content = self.content.lock().unwrap().clone();
        let stop = if content[0]["type"] == "text" { "end_turn" } else { "tool_use" };
        let body = json!({
            "type": "message", "role": "assistant", "model": "model-1", "content": content, "stop_reason": stop,
            "usage": {"input_tokens": 10, "output_tokens": 3},
        });
        let body = Sensitive::new(serde_json::to_vec(&body).unwrap());
        Box::pin(std::future::ready(ModelReply::Answered { body }))
    }
}

/// Documents that never change.
pub(crate) struct Unchanged;

impl Documents for Unchanged {
    fn refresh(&self) -> BoxFuture<'_, Result<(), DocumentsError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
