//! Every raw answer of the table, read and validated as both sides do.

use crate::table::{Expect, cases};
use serde_json::{Value, json};
use thought_protocol::answer::{FailReason, ValidatedAnswer, validate};
use thought_protocol::packet::Packet;
use thought_protocol::provider::read_answer;
use thought_protocol::result::{Captured, Mismatch, Outcome, WorkerResult, confirm, judge};

fn read(packet: &Packet, body: &[u8]) -> Result<ValidatedAnswer, FailReason> {
    validate(packet, &read_answer(packet, body)?)
}

fn shown(answer: &ValidatedAnswer) -> Value {
    json!({
        "summary": answer.summary,
        "fromModel": answer.text_from_model,
        "truncated": answer.truncated,
        "kinds": answer.proposals.iter().map(|call| call.kind().as_str()).collect::<Vec<_>>(),
        "thinking": answer.thinking_parts_dropped,
        "inputTokens": answer.usage.input_tokens,
        "outputTokens": answer.usage.output_tokens,
    })
}

#[test]
fn every_answer_of_the_table_comes_out_as_written() {
    let mut wrong = Vec::new();
    for case in cases() {
        let got = read(&case.packet, &case.body);
        let right = match (&case.expect, &got) {
            (Expect::Reason(reason), Err(found)) => found.as_str() == reason,
            (Expect::Valid(valid), Ok(answer)) => {
                let shown = shown(answer);
                valid.as_object().unwrap().iter().all(|(member, value)| shown[member] == *value)
            }
            _ => false,
        };
        if !right {
            wrong.push(format!("{}: {:?}", case.name, got.map(|answer| answer.proposals.len())));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_table_is_large_enough_to_mean_something() {
    let cases = cases();
    let hostile = cases.iter().filter(|case| matches!(case.expect, Expect::Reason(_))).count();
    assert!(hostile >= 200 && cases.len() - hostile >= 50, "{hostile} of {}", cases.len());
    let names: std::collections::HashSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len(), "two cases share a name");
}

#[test]
fn an_honest_result_is_confirmed_and_encodes_both_ways() {
    for case in cases() {
        let result = judge(&case.packet, &case.body);
        let decoded = WorkerResult::decode(&result.encode().unwrap()).unwrap();
        assert_eq!(decoded, result, "{}", case.name);
        match (&case.expect, confirm(&case.packet, &case.body, &decoded)) {
            (Expect::Valid(_), Ok(_)) => {}
            (Expect::Reason(reason), Err(found)) => assert_eq!(found.as_str(), reason, "{}", case.name),
            (_, other) => panic!("{}: {other:?}", case.name),
        }
    }
}

type Lie = fn(&mut WorkerResult);

const LIES: [(&str, Lie, Mismatch); 13] = [
    ("drops a call", |r| drop(calls(r).pop()), Mismatch::Calls),
    (
        "invents a call",
        |r| {
            let call = calls(r)[0].clone();
            calls(r).push(call);
        },
        Mismatch::Calls,
    ),
    ("swaps two calls", |r| calls(r).swap(0, 1), Mismatch::Calls),
    ("other evidence", |r| edit(r, "0003", "0010"), Mismatch::Calls),
    ("another target", |r| edit(r, "latest", "evt_00000000000000000000000000000001"), Mismatch::Calls),
    ("a path", |r| edit(r, "{", "{\"path\":\"x\","), Mismatch::Calls),
    ("white space in the arguments", |r| edit(r, "{", "{ "), Mismatch::Calls),
    ("another call id", |r| calls(r)[0].id.push('x'), Mismatch::Calls),
    ("another tool", |r| calls(r)[0].name = "propose_focus".into(), Mismatch::Calls),
    ("a forged acknowledgment", |r| set_text(r, "Memory was changed."), Mismatch::Text),
    ("no termination", |r| captured(r)[0].terminate = false, Mismatch::Captured),
    ("one captured less", |r| drop(captured(r).pop()), Mismatch::Captured),
    ("withholds", |r| *r = WorkerResult::of_failure(FailReason::Refusal), Mismatch::Withheld),
];

fn calls(result: &mut WorkerResult) -> &mut Vec<thought_protocol::answer::RawCall> {
    match &mut result.outcome {
        Outcome::Answer { calls, .. } => calls,
        Outcome::Failed { .. } => panic!("no answer"),
    }
}

fn captured(result: &mut WorkerResult) -> &mut Vec<Captured> {
    match &mut result.outcome {
        Outcome::Answer { captured, .. } => captured,
        Outcome::Failed { .. } => panic!("no answer"),
    }
}

fn set_text(result: &mut WorkerResult, forged: &str) {
    match &mut result.outcome {
        Outcome::Answer { text, .. } => *text = Some(forged.to_owned()),
        Outcome::Failed { .. } => panic!("no answer"),
    }
}

fn edit(result: &mut WorkerResult, from: &str, to: &str) {
    let call = calls(result).iter_mut().find(|call| call.arguments.contains(from)).unwrap();
    call.arguments = call.arguments.replacen(from, to, 1);
}

#[test]
fn a_lying_worker_is_refused_each_time() {
    let honest: Vec<_> = cases()
        .into_iter()
        .filter(|case| case.name.ends_with("calls alone: request_memory_change, submit_correction"))
        .collect();
    assert_eq!(honest.len(), 2);
    for case in honest {
        let own = read_answer(&case.packet, &case.body).unwrap();
        for (lie, tell, mismatch) in LIES {
            let mut result = judge(&case.packet, &case.body);
            tell(&mut result);
            assert_eq!(result.matches(&own), Err(mismatch), "{lie}");
            assert_eq!(confirm(&case.packet, &case.body, &result), Err(FailReason::WorkerMismatch), "{lie}");
        }
    }
}

#[test]
fn a_worker_that_calls_a_failed_answer_good_changes_nothing() {
    let bad = cases().into_iter().find(|case| case.name == "openai: length with a call").unwrap();
    let good = cases().into_iter().find(|case| case.name == "openai: plain text").unwrap();
    let result = judge(&good.packet, &good.body);
    assert_eq!(confirm(&bad.packet, &bad.body, &result), Err(FailReason::LengthWithCalls));
}

#[test]
fn results_out_of_form_are_refused() {
    let case = cases().into_iter().find(|case| case.name == "openai: plain text").unwrap();
    let bytes = String::from_utf8(judge(&case.packet, &case.body).encode().unwrap()).unwrap();
    let refused = |bytes: String| WorkerResult::decode(bytes.as_bytes()).unwrap_err().fail_reason();
    assert_eq!(
        refused(bytes.replace("\"resultFormat\":1", "\"resultFormat\":2")),
        FailReason::ProtocolVersion
    );
    for other in [
        bytes.replace("\"resultFormat\":1", "\"resultFormat\":1,\"x\":1"),
        bytes.replace("\"truncated\":false", "\"truncated\":false,\"path\":\"memory.md\""),
        bytes.replace("\"truncated\":false", "\"truncated\":0"),
        bytes.replace("\"resultFormat\":1", "\"resultFormat\":1,\"resultFormat\":1"),
        bytes.replace("\"kind\":\"answer\"", "\"kind\":\"approve\""),
        bytes.replace(",\"resultFormat\":1", ""),
        bytes.replace("\"text\":\"Good morning.\"", "\"text\":null"),
        format!(" {bytes}"),
        format!("{bytes}{bytes}"),
        String::from("{\"outcome\":{\"kind\":\"failed\",\"reason\":\"approved\"},\"resultFormat\":1}"),
        String::new(),
    ] {
        assert_eq!(refused(other.clone()), FailReason::WorkerProtocol, "{other}");
    }
}

#[test]
fn nothing_shown_for_debugging_holds_content() {
    for case in cases() {
        let Ok(answer) = read_answer(&case.packet, &case.body) else { continue };
        let mut shown = format!("{:?} {answer:?} {:?}", case.packet, judge(&case.packet, &case.body));
        if let Ok(validated) = validate(&case.packet, &answer) {
            shown.push_str(&format!("{validated:?}"));
        }
        for word in ["Good", "morning", "tea", "ferry", "harbour", "You are", "Hello", "model-1", "xxx"] {
            assert!(!shown.contains(word), "{}: {word} in {shown}", case.name);
        }
    }
}
