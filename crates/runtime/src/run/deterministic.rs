//! The runner without a model: code answers, nothing is asked, nothing is jailed and nothing is proposed.
//!
//! It takes the same path as every run (frozen context, attempt, settlement), so that what it leaves is read alike.

use thought_protocol::answer::{Usage, ValidatedAnswer};
use thought_protocol::packet::{Api, Compat, TokenLimit};

use crate::port::Binding;

/// Its name, where a provider and a model are named.
pub(crate) const NAME: &str = "deterministic";

/// What its attempts name as their tier: there is nothing to jail.
pub(crate) const TIER: &str = "none";

/// What its answers say.
const SUMMARY: &str = "Received.";

/// What stands for a provider in its snapshots.
pub(crate) fn binding() -> Binding {
    Binding {
        provider: NAME.to_owned(),
        api: Api::AnthropicMessages,
        model: NAME.to_owned(),
        compat: Compat::Standard,
        token_limit: TokenLimit::MaxCompletionTokens,
    }
}

/// Its answer.
pub(crate) fn answer() -> ValidatedAnswer {
    ValidatedAnswer {
        summary: SUMMARY.to_owned(),
        text_from_model: false,
        truncated: false,
        proposals: Vec::new(),
        thinking_parts_dropped: 0,
        usage: Usage::default(),
    }
}
