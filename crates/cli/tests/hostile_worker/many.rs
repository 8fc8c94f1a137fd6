//! A thousand workers, honest and not, one after the other and side by side.

use std::sync::Arc;

use thought_cli::jail::Jailer;
use thought_protocol::packet::PacketMessage;
use thought_runtime::port::Jail;
use thought_sandbox::Tier;

use crate::home::{PATIENCE, block_on, jailer, launcher, nothing_left, standing};
use crate::table::packet;
use crate::worker::{OBEDIENT, TELLS};

/// A step, or the code it ends with.
type Step = Result<(), &'static str>;

/// What the workers do, in turn, and what becomes of the request and of the result.
const WORDS: [(&str, Step, Step); 10] = [
    ("nothing", Ok(()), Ok(())),
    ("dies-at-packet", Err("worker-died"), Ok(())),
    ("starts-a-process", Err("worker-died"), Ok(())),
    ("frame-too-long", Err("worker-frame-too-long"), Ok(())),
    ("endless-stream", Err("worker-protocol"), Ok(())),
    ("dies-behind-request", Ok(()), Err("worker-died")),
    ("second-request", Ok(()), Err("worker-second-frame")),
    ("endless-behind-request", Ok(()), Err("worker-protocol")),
    ("result-of-another-version", Ok(()), Err("protocol-version")),
    ("murmurs", Ok(()), Ok(())),
];

pub(crate) fn a_thousand_launches_leave_nothing() {
    let before = standing();
    block_on(async {
        let tiers =
            [Tier::Full, Tier::LandlockSeccomp].map(|tier| jailer(launcher(tier, OBEDIENT), PATIENCE));
        let mut tasks = tokio::task::JoinSet::new();
        for jail in tiers.iter().flat_map(|jail| [jail.clone(), jail.clone()]) {
            tasks.spawn(async move {
                for round in 0..250 {
                    live(&jail, round).await;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
    nothing_left(before);
}

async fn live(jail: &Arc<Jailer>, round: usize) {
    let (word, request, result) = WORDS[round % WORDS.len()];
    let mut worker = jail.checkout().await.unwrap_or_else(|error| panic!("{}", error.code));
    if round % 25 == 24 {
        // Taken and not needed.
        return;
    }
    let mut packet = packet("anthropic");
    let Some(PacketMessage::User { text, .. }) = packet.messages.last_mut() else {
        panic!("a message is last")
    };
    *text = format!("{TELLS}{word}");
    let rendered = worker.render(packet.encode().unwrap()).await;
    assert_eq!(rendered.map(drop).map_err(|error| error.code), request, "{word}");
    if request.is_ok() {
        let read = worker.read(b"{}".to_vec()).await;
        assert_eq!(read.map(drop).map_err(|error| error.code), result, "{word}");
    }
}
