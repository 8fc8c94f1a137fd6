//! How a model server differs from others: key, models, and the vendors' variations.

/// How strict the server is, and about what.
#[derive(Clone, Default)]
pub struct ModelConfig {
    /// The key that requests must carry; `None`: none is asked for, as by local servers.
    pub api_key: Option<String>,
    /// The models that exist.
    pub models: KnownModels,
    /// Which name of the output limit chat completions take.
    pub token_limit: TokenLimit,
    /// What must stand beside tool calls in chat completions.
    pub content_beside_calls: ContentBesideCalls,
    /// Whether Anthropic's roles must alternate.
    pub role_order: RoleOrder,
    /// Whether requests are judged at all.
    pub validation: Validation,
}

/// The models that a server knows.
#[derive(Clone, Default)]
pub enum KnownModels {
    /// Every name is a model; the lists name `fake-model`.
    #[default]
    Any,
    /// These alone; requests for another get 404.
    Only(Vec<String>),
}

impl KnownModels {
    pub(super) fn admits(&self, model: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(models) => models.iter().any(|known| known == model),
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Any => vec!["fake-model".to_owned()],
            Self::Only(models) => models.clone(),
        }
    }
}

/// Which name of the output limit is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenLimit {
    /// Either, but not both.
    #[default]
    Either,
    /// `max_completion_tokens`, as newer models.
    MaxCompletionTokens,
    /// `max_tokens`, as older and local servers.
    MaxTokens,
}

/// What must stand beside tool calls in an assistant message of chat completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentBesideCalls {
    /// Nothing, null or a text.
    #[default]
    Any,
    /// `content: null`.
    Null,
    /// `content: ""`.
    Empty,
}

/// Whether two messages of one role may follow each other on the Anthropic API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoleOrder {
    /// They may, and are read as one turn: what the vendor does today.
    #[default]
    Combining,
    /// They may not, as in older and compatible servers.
    Alternating,
}

/// Whether requests are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// As the vendors do.
    #[default]
    Strict,
    /// Not at all: any body gets the scripted reply. For tests of the transport alone.
    Off,
}
