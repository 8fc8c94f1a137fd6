//! Statuses and error bodies of both vendors and of local servers: what may pass, and what will not.

use thought_protocol::packet::Api;
use thought_protocol::provider::{StatusClass, classify_status};
use thought_protocol::reason::FailReason;

const APIS: [Api; 2] = [Api::AnthropicMessages, Api::OpenaiChat];

fn permanent(reason: FailReason) -> StatusClass {
    StatusClass::Permanent { reason }
}

const fn transient(retry_after_seconds: Option<u64>) -> StatusClass {
    StatusClass::Transient { retry_after_seconds }
}

#[test]
fn statuses_that_may_pass_are_tried_again() {
    for api in APIS {
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 529, 599] {
            for body in [
                "",
                "not JSON",
                "{}",
                "{\"error\":null}",
                "{\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}",
            ] {
                assert_eq!(
                    classify_status(api, status, None, body.as_bytes()),
                    transient(None),
                    "{status} {body}"
                );
            }
        }
    }
}

#[test]
fn waiting_is_honoured_up_to_a_minute() {
    for (asked, honoured) in [
        (None, None),
        (Some(0), Some(0)),
        (Some(60), Some(60)),
        (Some(61), Some(60)),
        (Some(u64::MAX), Some(60)),
    ] {
        assert_eq!(classify_status(Api::OpenaiChat, 429, asked, b"{}"), transient(honoured));
        assert_eq!(classify_status(Api::AnthropicMessages, 529, asked, b"{}"), transient(honoured));
    }
}

#[test]
fn quota_and_spend_are_never_tried_again() {
    for api in APIS {
        for body in [
            r#"{"error":{"message":"x","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
            r#"{"error":{"message":"x","type":"insufficient_quota","code":"credit_balance_exhausted"}}"#,
            r#"{"error":{"message":"x","type":"requests","code":"organization_spend_limit_exceeded"}}"#,
            r#"{"error":{"message":"x","type":"x","code":"project_spend_limit_exceeded"}}"#,
            r#"{"error":{"message":"x","type":"x","code":"organization_usage_limit_exceeded"}}"#,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
            r#"{"type":"error","error":{"type":"billing_error","message":"x"}}"#,
        ] {
            let class = classify_status(api, 429, Some(3), body.as_bytes());
            assert_eq!(class, permanent(FailReason::ProviderQuota), "{body}");
        }
        let plain =
            r#"{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"#;
        assert_eq!(classify_status(api, 429, Some(3), plain.as_bytes()), transient(Some(3)));
        let number = r#"{"error":{"message":"busy","type":"server_error","code":429}}"#;
        assert_eq!(classify_status(api, 429, None, number.as_bytes()), transient(None));
        assert_eq!(classify_status(api, 402, None, b"{}"), permanent(FailReason::ProviderQuota));
    }
}

#[test]
fn a_context_that_is_too_large_is_recognised() {
    for api in APIS {
        for body in [
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 214000 tokens > 200000 maximum"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 1 + 2 > 2"}}"#,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}}"#,
            r#"{"error":"the prompt exceeds the model's context window"}"#,
        ] {
            let class = classify_status(api, 400, None, body.as_bytes());
            assert_eq!(class, permanent(FailReason::ContextTooLarge), "{body}");
        }
        assert_eq!(classify_status(api, 413, None, b"<html>"), permanent(FailReason::ContextTooLarge));
    }
}

#[test]
fn other_statuses_will_not_pass() {
    for api in APIS {
        for (status, reason) in [
            (400, FailReason::ProviderRefused),
            (401, FailReason::ProviderUnauthorized),
            (403, FailReason::ProviderUnauthorized),
            (404, FailReason::ProviderNotFound),
            (422, FailReason::ProviderRefused),
            (418, FailReason::ProviderRefused),
            (301, FailReason::ProviderRedirected),
            (307, FailReason::ProviderRedirected),
            (308, FailReason::ProviderRedirected),
            (100, FailReason::ProviderStatus),
            (201, FailReason::ProviderStatus),
            (204, FailReason::ProviderStatus),
            (600, FailReason::ProviderStatus),
            (0, FailReason::ProviderStatus),
        ] {
            let body = br#"{"error":{"message":"x","type":"invalid_request_error","code":null}}"#;
            assert_eq!(classify_status(api, status, Some(1), body), permanent(reason), "{status}");
        }
    }
}

#[test]
fn two_hundred_is_an_answer_only_in_the_shape_of_the_api() {
    let anthropic = br#"{"type":"message","content":[]}"#;
    let openai = br#"{"choices":[]}"#;
    assert_eq!(classify_status(Api::AnthropicMessages, 200, None, anthropic), StatusClass::Answer);
    assert_eq!(classify_status(Api::OpenaiChat, 200, None, openai), StatusClass::Answer);
    let twice = br#"{"choices":[],"choices":[]}"#;
    assert_eq!(classify_status(Api::OpenaiChat, 200, None, twice), StatusClass::Answer);
    for (api, body) in [
        (Api::AnthropicMessages, openai.as_slice()),
        (Api::OpenaiChat, anthropic.as_slice()),
        (Api::OpenaiChat, b"".as_slice()),
        (Api::OpenaiChat, b"<html></html>".as_slice()),
        (Api::OpenaiChat, b"{\"choices\":{}}".as_slice()),
        (Api::OpenaiChat, b"{\"error\":{}}".as_slice()),
        (Api::AnthropicMessages, b"[]".as_slice()),
        (Api::AnthropicMessages, b"\xff".as_slice()),
    ] {
        assert_eq!(classify_status(api, 200, None, body), permanent(FailReason::MalformedBody));
    }
}
