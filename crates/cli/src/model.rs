//! The model's adapter: names of providers become brokers, keys and all; the runtime sees replies alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thought_broker::{ApiKey, Broker, Endpoint, EqualBytes, Reply};
use thought_contract::run::HeldReason;
use thought_runtime::port::{Binding, Model, ModelReply};
use thought_store::BoxFuture;

use crate::config::Provider;
use crate::exit::{Exit, Failure, chain};
use crate::home::Home;
use crate::secrets::{self, Secret};

/// Every configured provider that can be used.
pub struct Models {
    usable: BTreeMap<String, (Binding, Arc<Broker>)>,
    problems: Vec<String>,
}

impl Models {
    /// Opens the configured providers. One without its key is left out: its runs wait.
    ///
    /// # Errors
    /// [`Failure`] for a key file that is open to others, a key that cannot be one, or a client that cannot be built.
    pub fn open(home: &Home) -> Result<Self, Failure> {
        let mut models = Self { usable: BTreeMap::new(), problems: Vec::new() };
        for (name, provider) in &home.config.provider {
            match broker(home, name, provider)? {
                Ok(broker) => {
                    let binding = Binding {
                        provider: name.clone(),
                        api: provider.api,
                        model: provider.model.clone(),
                        compat: provider.compat,
                        token_limit: provider.token_limit,
                    };
                    models.usable.insert(name.clone(), (binding, Arc::new(broker)));
                }
                Err(problem) => models.problems.push(format!("provider {name}: {problem}")),
            }
        }
        Ok(models)
    }

    /// What keeps configured providers from being used.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

/// A provider's broker, or what keeps it from being used.
///
/// # Errors
/// As [`Models::open`].
pub fn broker(home: &Home, name: &str, provider: &Provider) -> Result<Result<Broker, String>, Failure> {
    let key = match secrets::provider_key(home, provider)? {
        Secret::Found(text) => {
            let key = ApiKey::new(text.into_inner()).map_err(|error| {
                Failure::refused("provider-key", format!("provider {name}: {}", chain(&error)))
            })?;
            Some(key)
        }
        Secret::Missing(what) => return Ok(Err(what)),
        Secret::NotNamed => None,
    };
    let timeout = Duration::from_secs(provider.timeout_seconds);
    let endpoint = Endpoint::new(provider.api, &provider.base_url, key, timeout)
        .map_err(|error| Failure::refused("provider", format!("provider {name}: {}", chain(&error))))?;
    let built = Broker::new(endpoint).map_err(|error| {
        Failure::new(Exit::Machine, "provider", format!("provider {name}: {}", chain(&error)))
            .hint("https needs root certificates: install ca-certificates")
    })?;
    Ok(Ok(built))
}

impl Model for Models {
    fn binding(&self, provider: &str) -> Result<Binding, HeldReason> {
        let found = self.usable.get(provider).map(|(binding, _)| binding.clone());
        found.ok_or(HeldReason::ProviderUnconfigured)
    }

    fn request(
        &self,
        provider: &str,
        parent_rendered: Vec<u8>,
        worker_rendered: Vec<u8>,
    ) -> BoxFuture<'_, ModelReply> {
        let broker = self.usable.get(provider).map(|(_, broker)| broker.clone());
        Box::pin(async move {
            let Some(broker) = broker else {
                return ModelReply::RefusedBeforeRequest { code: HeldReason::ProviderUnconfigured.as_str() };
            };
            let Ok(equal) = EqualBytes::check(parent_rendered, &worker_rendered) else {
                return ModelReply::BytesDiffer;
            };
            match broker.request(equal).await {
                Reply::Answered { body, timings } => {
                    tracing::debug!(
                        target: "thought::broker",
                        first_byte_ms = u64::try_from(timings.first_byte.as_millis()).unwrap_or(u64::MAX),
                        bytes = body.expose().len(),
                        "answered"
                    );
                    ModelReply::Answered { body }
                }
                Reply::Status { status, retry_after_seconds, body, .. } => {
                    ModelReply::Status { status, retry_after_seconds, body }
                }
                Reply::RefusedBeforeRequest { reason } => {
                    ModelReply::RefusedBeforeRequest { code: reason.code() }
                }
                Reply::Unknown { reason } => ModelReply::Unknown { code: reason.code() },
            }
        })
    }
}
