//! What an attempt came to, and what follows from it: the table of retries, as pure functions.
//!
//! Nothing here waits, reads a clock or writes. An answer that fails validation is never tried again: the provider has
//! done its work, and the same question would only be paid for twice.

use thought_contract::run::{AttemptState, BlockedReason};
use thought_protocol::Sensitive;
use thought_protocol::answer::FailReason;
use thought_protocol::limits::{BACKOFF_FIRST_MS, RETRY_AFTER_SECONDS_MAX};
use thought_protocol::packet::Api;
use thought_protocol::provider::{StatusClass, classify_status};

use crate::port::ModelReply;
use crate::reason;

/// An attempt that gave nothing to settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// How the attempt ended.
    pub(crate) state: AttemptState,
    /// Why, as the attempt records it.
    pub(crate) code: &'static str,
    /// Tokens that the provider told, in and out.
    pub(crate) tokens: (Option<u64>, Option<u64>),
    /// What it means for the run.
    pub(crate) next: Next,
}

/// What a fault means for its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another attempt may follow; when none is left, the run fails with this reason.
    Retry {
        /// What the provider asked to wait.
        retry_after_seconds: Option<u64>,
        /// The reason of the run when no attempt is left.
        exhausted: &'static str,
    },
    /// As `Retry`, but once in a run.
    RetryOnce {
        /// The reason of the run when no attempt is left.
        exhausted: &'static str,
    },
    /// The run fails.
    Fail(&'static str),
    /// The run may not go on.
    Block(BlockedReason),
}

impl Fault {
    /// A fault that ends its run with a reason of the protocol.
    pub(crate) fn of_reason(state: AttemptState, reason: FailReason) -> Self {
        let next = match reason {
            FailReason::ProtocolVersion => Next::Block(BlockedReason::ProtocolVersion),
            FailReason::ContextTooLarge => Next::Block(BlockedReason::ContextTooLarge),
            other => Next::Fail(other.as_str()),
        };
        Self { state, code: reason.as_str(), tokens: (None, None), next }
    }

    /// A fault that ends its run with a code.
    pub(crate) const fn fails(state: AttemptState, code: &'static str) -> Self {
        Self { state, code, tokens: (None, None), next: Next::Fail(code) }
    }
}

/// What the reply to the one request is: a body to read, or a fault.
pub(crate) fn classify(api: Api, reply: ModelReply) -> Result<Sensitive<Vec<u8>>, Fault> {
    let fault = |state, code, next| Fault { state, code, tokens: (None, None), next };
    match reply {
        ModelReply::Answered { body } => match classify_status(api, 200, None, body.expose()) {
            StatusClass::Answer => Ok(body),
            class => Err(of_class(class)),
        },
        ModelReply::Status { status, retry_after_seconds, body } => {
            Err(of_class(classify_status(api, status, retry_after_seconds, body.expose())))
        }
        ModelReply::RefusedBeforeRequest { code: "not-built" } => {
            Err(Fault::fails(AttemptState::RefusedBeforeRequest, "not-built"))
        }
        ModelReply::RefusedBeforeRequest { code } => Err(fault(
            AttemptState::RefusedBeforeRequest,
            code,
            Next::Retry { retry_after_seconds: None, exhausted: reason::PROVIDER_UNREACHABLE },
        )),
        ModelReply::Unknown { code } => {
            Err(fault(AttemptState::Unknown, code, Next::RetryOnce { exhausted: reason::OUTCOME_UNKNOWN }))
        }
        ModelReply::BytesDiffer => {
            Err(Fault::of_reason(AttemptState::RefusedBeforeRequest, FailReason::RequestMismatch))
        }
    }
}

fn of_class(class: StatusClass) -> Fault {
    match class {
        StatusClass::Transient { retry_after_seconds } => Fault {
            state: AttemptState::Transient,
            code: reason::PROVIDER_UNAVAILABLE,
            tokens: (None, None),
            next: Next::Retry { retry_after_seconds, exhausted: reason::PROVIDER_UNAVAILABLE },
        },
        StatusClass::Permanent { reason } => Fault::of_reason(AttemptState::Permanent, reason),
        // A body of the right shape under another status than 200 is no answer.
        StatusClass::Answer => Fault::of_reason(AttemptState::Permanent, FailReason::ProviderStatus),
    }
}

/// What a run does after an attempt that gave nothing to settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Waits, then makes another attempt.
    Again {
        /// Milliseconds.
        wait_ms: u64,
    },
    /// Ends `failed`.
    Fail(&'static str),
    /// Ends `blocked`.
    Block(BlockedReason),
}

/// What a run has used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    /// Attempts, this one included.
    pub(crate) attempts: u32,
    /// How many of those before this one ended `unknown`.
    pub(crate) unknown: u32,
}

/// Decides what follows a fault.
pub(crate) fn decide(fault: &Fault, used: Used, attempts_max: u32, left_ms: u64) -> Step {
    let (retry_after_seconds, exhausted, allowed) = match fault.next {
        Next::Fail(code) => return Step::Fail(code),
        Next::Block(reason) => return Step::Block(reason),
        Next::Retry { retry_after_seconds, exhausted } => (retry_after_seconds, exhausted, true),
        Next::RetryOnce { exhausted } => (None, exhausted, used.unknown == 0),
    };
    if !allowed || used.attempts >= attempts_max {
        return Step::Fail(exhausted);
    }
    let wait_ms = wait_ms(used.attempts, retry_after_seconds);
    if wait_ms < left_ms { Step::Again { wait_ms } } else { Step::Fail(reason::RUN_TIMEOUT) }
}

/// The wait after this many attempts: what the provider asked for, up to its cap, or half a second that doubles.
pub(crate) fn wait_ms(attempts: u32, retry_after_seconds: Option<u64>) -> u64 {
    match retry_after_seconds {
        Some(seconds) => seconds.min(RETRY_AFTER_SECONDS_MAX) * 1_000,
        None => {
            let doubled = BACKOFF_FIRST_MS.saturating_mul(1_u64 << attempts.saturating_sub(1).min(16));
            doubled.min(RETRY_AFTER_SECONDS_MAX * 1_000)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;

    fn status(status: u16, retry_after_seconds: Option<u64>, body: &str) -> Fault {
        let body = Sensitive::new(body.as_bytes().to_vec());
        classify(Api::AnthropicMessages, ModelReply::Status { status, retry_after_seconds, body })
            .unwrap_err()
    }

    fn after(fault: &Fault, attempts: u32, unknown: u32) -> Step {
        decide(fault, Used { attempts, unknown }, 3, 5 * MINUTE_MS)
    }

    #[test]
    fn what_may_pass_is_tried_again_and_what_will_not_is_not() {
        for code in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
            let fault = status(code, None, "{}");
            assert_eq!(fault.state, AttemptState::Transient, "{code}");
            assert_eq!(after(&fault, 1, 0), Step::Again { wait_ms: 500 }, "{code}");
            assert_eq!(after(&fault, 2, 0), Step::Again { wait_ms: 1_000 }, "{code}");
            assert_eq!(after(&fault, 3, 0), Step::Fail("provider-unavailable"), "{code}");
        }
        let table = [
            (301, "provider-redirected"),
            (307, "provider-redirected"),
            (400, "provider-refused"),
            (401, "provider-unauthorized"),
            (402, "provider-quota"),
            (403, "provider-unauthorized"),
            (404, "provider-not-found"),
            (204, "provider-status"),
        ];
        for (code, reason) in table {
            let fault = status(code, Some(1), "{}");
            assert_eq!(fault.state, AttemptState::Permanent, "{code}");
            assert_eq!(after(&fault, 1, 0), Step::Fail(reason), "{code}");
        }
        let quota = status(429, Some(1), r#"{"error":{"code":"insufficient_quota"}}"#);
        assert_eq!(after(&quota, 1, 0), Step::Fail("provider-quota"));
        let large = status(413, None, "");
        assert_eq!(after(&large, 1, 0), Step::Block(BlockedReason::ContextTooLarge));
    }

    #[test]
    fn a_200_that_is_not_the_apis_json_is_permanent() {
        let body = Sensitive::new(b"<html>".to_vec());
        let fault = classify(Api::OpenaiChat, ModelReply::Answered { body }).unwrap_err();
        assert_eq!((fault.state, fault.next), (AttemptState::Permanent, Next::Fail("malformed-body")));
    }

    #[test]
    fn an_unknown_outcome_is_tried_again_once_in_a_run() {
        let fault = classify(Api::OpenaiChat, ModelReply::Unknown { code: "truncated-body" }).unwrap_err();
        assert_eq!(fault.state, AttemptState::Unknown);
        assert_eq!(after(&fault, 1, 0), Step::Again { wait_ms: 500 });
        assert_eq!(after(&fault, 2, 1), Step::Fail("outcome-unknown"));
        assert_eq!(after(&fault, 3, 0), Step::Fail("outcome-unknown"));
    }

    #[test]
    fn what_was_never_written_is_tried_again_unless_it_is_a_defect() {
        for code in ["connect", "dns", "tls", "connect-timeout"] {
            let fault = classify(Api::OpenaiChat, ModelReply::RefusedBeforeRequest { code }).unwrap_err();
            assert_eq!((fault.state, fault.code), (AttemptState::RefusedBeforeRequest, code));
            assert_eq!(after(&fault, 1, 0), Step::Again { wait_ms: 500 });
            assert_eq!(after(&fault, 3, 0), Step::Fail("provider-unreachable"));
        }
        let defect = ModelReply::RefusedBeforeRequest { code: "not-built" };
        let fault = classify(Api::OpenaiChat, defect).unwrap_err();
        assert_eq!(after(&fault, 1, 0), Step::Fail("not-built"));
        let fault = classify(Api::OpenaiChat, ModelReply::BytesDiffer).unwrap_err();
        assert_eq!(after(&fault, 1, 0), Step::Fail("request-mismatch"));
    }

    #[test]
    fn the_providers_wait_is_honoured_up_to_its_cap() {
        assert_eq!(after(&status(429, Some(7), "{}"), 1, 0), Step::Again { wait_ms: 7_000 });
        assert_eq!(after(&status(503, Some(0), "{}"), 1, 0), Step::Again { wait_ms: 0 });
        assert_eq!(after(&status(503, Some(86_400), "{}"), 1, 0), Step::Again { wait_ms: 60_000 });
        assert_eq!(wait_ms(200, None), 60_000);
    }

    #[test]
    fn a_wait_beyond_the_runs_time_ends_it() {
        let fault = status(503, Some(30), "{}");
        let used = Used { attempts: 1, unknown: 0 };
        assert_eq!(decide(&fault, used, 3, 30_000), Step::Fail("run-timeout"));
        assert_eq!(decide(&fault, used, 3, 30_001), Step::Again { wait_ms: 30_000 });
        assert_eq!(decide(&fault, used, 3, 0), Step::Fail("run-timeout"));
    }
}
