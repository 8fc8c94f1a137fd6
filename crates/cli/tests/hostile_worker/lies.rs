//! A hostile worker under the runtime: each lie ends in a reason of its own, costs at most the one request, tells
//! nothing, and leaves nothing. A worker that is lost before the request is replaced until the attempts are used up;
//! one that lies is not.

use std::path::Path;
use std::time::{Duration, Instant};

use thought_contract::run::{AttemptState, RunState};
use thought_protocol::packet::{PacketImage, PacketMessage};
use thought_runtime::port::Jail;
use thought_sandbox::{Launcher, Tier, WorkerLimits};

use crate::home::{ASKED, Home, PATIENCE, REMEMBERED, block_on, jailer, launcher, nothing_left, standing};
use crate::model::ANSWERED;
use crate::worker::{DEAD, DEAF, OBEDIENT};
use crate::{heard, table};

/// What the model says to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Text,
    Call,
}
use Says::{Call, Text};

/// A lie: its word, what the model says, the reason of the run (none: it completes), the reason of the attempt.
type Lie = (&'static str, Says, Option<&'static str>, Option<&'static str>);

const BROKE: Option<&str> = Some("worker-protocol");
const DIED: Option<&str> = Some("worker-died");
const SECOND: Option<&str> = Some("worker-second-frame");
const TOO_LONG: Option<&str> = Some("worker-frame-too-long");
const OTHER_REQUEST: Option<&str> = Some("request-mismatch");
const OTHER_RESULT: Option<&str> = Some("worker-mismatch");
const VERSION: Option<&str> = Some("protocol-version");

/// Attempts that a run has.
const ATTEMPTS_MAX: usize = 3;

/// Lies that cost no request.
const BEFORE_THE_REQUEST: &[Lie] = &[
    ("lies-at-the-end", Text, OTHER_REQUEST, OTHER_REQUEST),
    ("lies-at-the-start", Text, OTHER_REQUEST, OTHER_REQUEST),
    ("lies-in-length", Text, OTHER_REQUEST, OTHER_REQUEST),
    ("lies-with-another-model", Text, OTHER_REQUEST, OTHER_REQUEST),
    ("frame-too-long", Text, BROKE, TOO_LONG),
    ("frame-of-another-version", Text, VERSION, VERSION),
    ("frame-without-magic", Text, BROKE, BROKE),
    ("endless-stream", Text, BROKE, BROKE),
    ("result-for-request", Text, BROKE, BROKE),
    ("packet-for-request", Text, BROKE, SECOND),
    ("unfinished-request", Text, BROKE, DIED),
    ("half-a-header", Text, BROKE, DIED),
    ("dies-at-packet", Text, BROKE, DIED),
    ("panics", Text, BROKE, DIED),
    ("starts-a-thread", Text, BROKE, DIED),
    ("starts-a-process", Text, BROKE, DIED),
    ("opens-a-file", Text, BROKE, DIED),
    ("connects", Text, BROKE, DIED),
];

/// Lies after the one request.
const BEHIND_THE_REQUEST: &[Lie] = &[
    ("nothing", Text, None, None),
    ("nothing", Call, None, None),
    ("murmurs", Text, None, None),
    ("dies-behind-result", Text, None, None),
    ("dies-behind-request", Text, BROKE, DIED),
    ("dies-at-answer", Text, BROKE, DIED),
    ("second-request", Text, BROKE, SECOND),
    ("second-frame-behind-result", Text, BROKE, SECOND),
    ("endless-behind-request", Text, BROKE, BROKE),
    ("endless-result", Text, BROKE, SECOND),
    ("result-too-long", Text, BROKE, TOO_LONG),
    ("unfinished-result", Text, BROKE, DIED),
    ("result-of-another-version", Text, BROKE, VERSION),
    ("request-for-result", Text, BROKE, SECOND),
    ("result-before-answer", Text, OTHER_RESULT, OTHER_RESULT),
    ("result-of-nonsense", Text, BROKE, BROKE),
    ("result-of-another-format", Text, VERSION, VERSION),
    ("withholds", Text, OTHER_RESULT, OTHER_RESULT),
    ("other-text", Text, OTHER_RESULT, OTHER_RESULT),
    ("no-text", Text, OTHER_RESULT, OTHER_RESULT),
    ("cut-text", Text, OTHER_RESULT, OTHER_RESULT),
    ("drops-a-call", Call, OTHER_RESULT, OTHER_RESULT),
    ("invents-a-call", Text, OTHER_RESULT, OTHER_RESULT),
    ("invents-a-call", Call, OTHER_RESULT, OTHER_RESULT),
    ("changes-a-call", Call, OTHER_RESULT, OTHER_RESULT),
    ("frees-a-call", Call, OTHER_RESULT, OTHER_RESULT),
    ("other-tokens", Text, OTHER_RESULT, OTHER_RESULT),
    ("other-thinking", Text, OTHER_RESULT, OTHER_RESULT),
];

pub(crate) fn in_the_full_tier() {
    every_lie(Tier::Full);
}

pub(crate) fn in_the_lesser_tier() {
    every_lie(Tier::LandlockSeccomp);
}

fn every_lie(tier: Tier) {
    heard::listen();
    let before = standing();
    block_on(async {
        let mut home = Home::new(300).await;
        let at_work = home.consumer(jailer(launcher(tier, OBEDIENT), PATIENCE)).await;
        for lie in BEFORE_THE_REQUEST {
            check(&mut home, tier, lie, 0).await;
        }
        for lie in BEHIND_THE_REQUEST {
            check(&mut home, tier, lie, 1).await;
        }
        at_work.stop().await;
    });
    nothing_left(before);
    dark();
    assert!(heard::has("thought::jail", "end=Signal(31)"), "an end by the filter is told");
}

async fn check(home: &mut Home, tier: Tier, (word, says, of_run, of_attempt): &Lie, requests: u32) {
    match says {
        Text => home.model.says_text(),
        Call => home.model.makes_a_call(),
    }
    let asked = *home.model.requests.lock().unwrap();
    let trigger = home.tell(word).await;
    let (run, attempts) = home.ended(&trigger, word).await;
    let made = if requests == 0 && *of_attempt == DIED { ATTEMPTS_MAX } else { 1 };
    assert_eq!(attempts.len(), made, "{tier}: {word}: attempts");
    let expected = match *of_run {
        None => RunState::Completed,
        VERSION => RunState::Blocked,
        Some(_) => RunState::Failed,
    };
    assert_eq!((run.state, run.reason.as_deref()), (expected, *of_run), "{tier}: {word}");
    assert_eq!(*home.model.requests.lock().unwrap() - asked, requests, "{tier}: {word}: requests");
    let answered = if requests == 0 { AttemptState::RefusedBeforeRequest } else { AttemptState::Answered };
    for attempt in &attempts {
        let found = (attempt.state, attempt.reason.as_deref());
        assert_eq!(found, (answered, *of_attempt), "{tier}: {word}");
        assert_eq!(attempt.sandbox, tier.name(), "{tier}: {word}");
    }
    assert_eq!(run.output.is_some(), of_run.is_none(), "{tier}: {word}: no output but of a whole answer");
    if answered == AttemptState::Answered {
        assert_eq!(attempts[0].input_tokens, Some(10), "{tier}: {word}: what was spent is counted");
    }
    if matches!(*of_run, OTHER_REQUEST | OTHER_RESULT) {
        assert_eq!(Some(home.incident(&run).await.as_str()), *of_run, "{tier}: {word}");
    }
}

fn dark() {
    heard::check_dark(&["quetzal", ASKED, REMEMBERED, ANSWERED, crate::worker::TELLS]);
}

/// One word, told to a worker of little patience or in a run of little time.
struct Telling {
    word: &'static str,
    patience: Duration,
    timeout_seconds: u32,
}

/// How long it took at least, and the reasons of the run and of each attempt.
type Told = (Duration, Option<String>, Vec<Option<String>>);

async fn tell(telling: &Telling) -> Told {
    let mut home = Home::new(telling.timeout_seconds).await;
    let at_work = home.consumer(jailer(launcher(Tier::Full, OBEDIENT), telling.patience)).await;
    let began = Instant::now();
    let trigger = home.tell(telling.word).await;
    let (run, attempts) = home.ended(&trigger, telling.word).await;
    let took = began.elapsed();
    at_work.stop().await;
    (took, run.reason, attempts.into_iter().map(|attempt| attempt.reason).collect())
}

pub(crate) fn silence() {
    const PATIENCE: Duration = Duration::from_secs(3);
    const DEADLINE: Option<&str> = Some("run-timeout");
    let cases = [
        ("mute-at-packet", "worker-silent", ATTEMPTS_MAX),
        ("spins-at-packet", "worker-silent", ATTEMPTS_MAX),
        ("waits-within-request", "worker-silent", ATTEMPTS_MAX),
        ("mute-behind-request", "worker-silent", 1),
        ("mute-at-answer", "worker-silent", 1),
        ("lingers", "worker-lingered", 1),
        ("floods", "worker-flooded", 1),
    ];
    heard::listen();
    let before = standing();
    block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for (word, of_attempt, made) in cases {
            tasks.spawn(async move {
                let told = tell(&Telling { word, patience: PATIENCE, timeout_seconds: 300 }).await;
                assert_eq!(told.1.as_deref(), BROKE, "{word}");
                assert_eq!(told.2, vec![Some(of_attempt.to_owned()); made], "{word}");
                let least = PATIENCE * u32::try_from(made).unwrap();
                assert!(told.0 >= least, "{word}: each was given its time");
            });
        }
        // Where the run has less time than the worker, the run's deadline comes first.
        tasks.spawn(async {
            let patience = crate::home::PATIENCE;
            let told = tell(&Telling { word: "mute-at-packet", patience, timeout_seconds: 1 }).await;
            assert_eq!(told.1.as_deref(), DEADLINE);
            assert_eq!(told.2, [DEADLINE.map(str::to_owned)]);
            assert!(told.0 >= Duration::from_secs(1));
        });
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
    nothing_left(before);
    dark();
}

pub(crate) fn dead_before_the_packet() {
    let before = standing();
    for tier in [Tier::Full, Tier::LandlockSeccomp] {
        block_on(async {
            let jail = jailer(launcher(tier, DEAD), PATIENCE);
            // It may die before or after it was handed out; either way it is told, and the jail goes on.
            for _ in 0..5 {
                let mut worker = match jail.checkout().await {
                    Ok(worker) => worker,
                    Err(error) => panic!("{tier}: {}", error.code),
                };
                let error = worker.render(table::packet("anthropic").encode().unwrap()).await.unwrap_err();
                assert_eq!(error.code, "worker-died", "{tier}");
            }
        });
    }
    nothing_left(before);
}

pub(crate) fn deaf_to_a_large_packet() {
    let before = standing();
    for tier in [Tier::Full, Tier::LandlockSeccomp] {
        let path = Path::new("/proc/self/exe");
        // Out of processor time it dies; out of patience it is killed. Both end it.
        for (cpu_seconds, patience, code) in
            [(1, PATIENCE, "worker-died"), (30, Duration::from_secs(1), "worker-silent")]
        {
            let limits = WorkerLimits { cpu_seconds, ..WorkerLimits::default() };
            let launcher = Launcher::of_path(path, tier, limits, DEAF).unwrap().with_seal_timeout(PATIENCE);
            block_on(async {
                let jail = jailer(launcher, patience);
                let mut worker = jail.checkout().await.unwrap_or_else(|error| panic!("{}", error.code));
                let error = worker.render(large_packet()).await.unwrap_err();
                assert_eq!(error.code, code, "{tier}");
            });
        }
    }
    nothing_left(before);
}

/// More than a channel holds.
fn large_packet() -> Vec<u8> {
    let mut packet = table::packet("anthropic");
    let Some(PacketMessage::User { images, .. }) = packet.messages.last_mut() else {
        panic!("a message is last")
    };
    images.push(PacketImage { media_type: "image/png".to_owned(), data_base64: "A".repeat(4 * 1024 * 1024) });
    packet.encode().unwrap()
}
