//! Conversations: ordinals, and turns with their evidence.

use std::sync::Arc;

use serde_json::json;
use thought_contract::event::SourceName;
use thought_contract::run::{AttemptState, RunState, attempt_id};
use thought_protocol::EventId;

use super::deliveries::delivered;
use super::world::{
    AGENT, CHAT, answered, done, ended, fail, install, mail, message, message_in, started, stored, telegram,
};
use crate::engine::Engine;
use crate::row::{ContextQuery, HistoryQuery, HistoryTurn, ReplyState};

fn query(before_ordinal: u64, limit: u32) -> HistoryQuery {
    HistoryQuery {
        source: telegram(),
        conversation: format!("{CHAT}:0"),
        before_ordinal,
        limit,
        agents: vec![AGENT.to_owned()],
    }
}

async fn turns(engine: &Arc<dyn Engine>, before_ordinal: u64, limit: u32) -> Vec<HistoryTurn> {
    engine.history(query(before_ordinal, limit)).await.unwrap()
}

fn ordinals(turns: &[HistoryTurn]) -> Vec<u64> {
    turns.iter().map(|turn| turn.ordinal).collect()
}

pub(super) async fn turns_come_oldest_first_up_to_the_limit(engine: Arc<dyn Engine>) {
    let mut ids = Vec::new();
    for number in 1..=6 {
        ids.push(stored(&engine, message(number)).await.envelope.id);
    }
    assert_eq!(ordinals(&turns(&engine, 6, 3).await), [3, 4, 5]);
    assert_eq!(ordinals(&turns(&engine, 3, 10).await), [1, 2]);
    assert_eq!(ordinals(&turns(&engine, u64::MAX, 1).await), [6]);
    assert!(turns(&engine, 1, 10).await.is_empty());
    assert!(turns(&engine, 6, 0).await.is_empty());
    let found = turns(&engine, 4, 10).await;
    assert_eq!(found[1].message.envelope.id, ids[1]);
    let conversation = format!("{CHAT}:0");
    let newest = engine.turn_ids(telegram(), conversation.clone(), 2, 5, 2).await.unwrap();
    assert_eq!(newest, [ids[3].clone(), ids[2].clone()]);
    assert!(engine.turn_ids(telegram(), conversation, 5, 5, 9).await.unwrap().is_empty());
}

pub(super) async fn a_context_is_what_its_parts_are(engine: Arc<dyn Engine>) {
    install(&engine).await;
    for number in 1..=5 {
        let output = answered(&engine, number).await.2;
        delivered(&engine, &output).await;
    }
    let trigger = stored(&engine, message(6)).await.envelope.id;
    let query = |turns_max, older_max| ContextQuery {
        trigger: trigger.clone(),
        turns_max,
        agents: vec![AGENT.to_owned()],
        older_max,
        documents: Some((SourceName::new("filesystem:none"), vec!["identity.md".to_owned()])),
    };
    let (conversation, ordinal) = engine.turn_ordinal(trigger.clone()).await.unwrap().unwrap();
    for (turns_max, older_max, older) in [(2, 9, 3), (2, 1, 1), (9, 9, 0), (0, 9, 5), (2, 0, 0)] {
        let rows = engine.context(query(turns_max, older_max)).await.unwrap().unwrap();
        assert_eq!((&rows.conversation, rows.ordinal), (&conversation, ordinal));
        let apart = turns(&engine, ordinal, turns_max).await;
        assert_eq!(ordinals(&rows.turns), ordinals(&apart));
        for (one, other) in rows.turns.iter().zip(&apart) {
            assert_eq!((&one.message, one.runs.len()), (&other.message, 1));
            assert_eq!(one.runs[0].output, other.runs[0].output);
            assert_eq!(one.runs[0].receipt, other.runs[0].receipt);
        }
        let oldest = rows.turns.first().map_or(ordinal, |turn| turn.ordinal);
        let ids = engine.turn_ids(telegram(), conversation.clone(), 1, oldest, older_max).await.unwrap();
        assert_eq!((rows.older.len(), &rows.older), (older, &ids));
        assert!(rows.documents.is_empty());
    }
    let unknown = ContextQuery { trigger: EventId::of("nobody", &[json!(1)]), ..query(1, 1) };
    assert!(engine.context(unknown).await.unwrap().is_none());
}

pub(super) async fn conversations_count_their_own_turns(engine: Arc<dyn Engine>) {
    let here = stored(&engine, message_in(1, 1, "a")).await.envelope.id;
    let there = stored(&engine, message_in(2, 1, "b")).await.envelope.id;
    let again = stored(&engine, message_in(1, 2, "c")).await.envelope.id;
    stored(&engine, message_in(1, 2, "c")).await;
    let agent = stored(&engine, mail("co", "m-1", "t")).await.envelope.id;
    let ordinal = |id: EventId| {
        let engine = engine.clone();
        async move { engine.turn_ordinal(id).await.unwrap() }
    };
    assert_eq!(ordinal(here).await, Some(("1:0".to_owned(), 1)));
    assert_eq!(ordinal(there).await, Some(("2:0".to_owned(), 1)));
    assert_eq!(ordinal(again).await, Some(("1:0".to_owned(), 2)));
    assert_eq!(ordinal(agent).await, Some(("stream-agent-conversation/thread".to_owned(), 1)));
    install(&engine).await;
    let output = answered(&engine, 9).await.2;
    assert_eq!(ordinal(output).await, None);
    assert!(
        engine
            .history(HistoryQuery { source: SourceName::new("telegram:other"), ..query(9, 9) })
            .await
            .unwrap()
            .is_empty()
    );
}

pub(super) async fn a_turn_carries_its_evidence(engine: Arc<dyn Engine>) {
    install(&engine).await;
    let (_, first, output) = answered(&engine, 1).await;
    let receipt = delivered(&engine, &output).await;
    let (trigger, second) = started(&engine, 2).await;
    let mut ops = vec![ended(attempt_id(&second, 1), AttemptState::Permanent)];
    ops.extend(fail(&trigger, &second));
    done(&engine, ops).await;
    started(&engine, 3).await;

    let turns = turns(&engine, 9, 9).await;
    assert_eq!(ordinals(&turns), [1, 2, 3]);
    let answered = &turns[0].runs[0];
    assert_eq!((&answered.run.id, answered.run.state), (&first, RunState::Completed));
    assert_eq!(answered.output.as_ref().unwrap().envelope.id, output);
    assert_eq!(Some(&answered.completed.as_ref().unwrap().envelope.id), answered.run.terminal.as_ref());
    assert_eq!(answered.proposals.len(), 1);
    assert_eq!(answered.proposals[0].envelope.parent_id, Some(output));
    assert_eq!(answered.reply, ReplyState::Receipt(receipt.clone()));
    assert_eq!(answered.receipt.as_ref().unwrap().envelope.id, receipt);
    assert!(answered.judgment.is_none());
    for (turn, state) in [(&turns[1], RunState::Failed), (&turns[2], RunState::Running)] {
        let run = &turn.runs[0];
        assert_eq!((run.run.state, run.reply.clone()), (state, ReplyState::NotDelivered));
        assert!(run.output.is_none() && run.completed.is_none() && run.proposals.is_empty());
    }
}

pub(super) async fn only_the_named_agents_are_history(engine: Arc<dyn Engine>) {
    install(&engine).await;
    answered(&engine, 1).await;
    let others = HistoryQuery { agents: vec!["another-agent".to_owned()], ..query(9, 9) };
    let turns = engine.history(others).await.unwrap();
    assert_eq!(turns.len(), 1);
    assert!(turns[0].runs.is_empty());
}

pub(super) async fn the_newest_judgment_counts(engine: Arc<dyn Engine>) {
    // Judgments have no producer yet; what a reconstruction sees without one is all that can be asked.
    install(&engine).await;
    let (_, _, output) = answered(&engine, 1).await;
    delivered(&engine, &output).await;
    assert!(turns(&engine, 9, 9).await[0].runs[0].judgment.is_none());
    let unknown = EventId::of("nobody", &[json!(1)]);
    assert_eq!(engine.reply_state(unknown).await.unwrap(), ReplyState::NotDelivered);
}

pub(super) async fn history_costs_what_it_shows(engine: Arc<dyn Engine>) {
    install(&engine).await;
    for number in 1..=8 {
        let output = answered(&engine, number).await.2;
        delivered(&engine, &output).await;
    }
    let cost = |before_ordinal| {
        let engine = engine.clone();
        async move {
            let before = engine.counters().rows_read;
            assert_eq!(turns(&engine, before_ordinal, 2).await.len(), 2);
            engine.counters().rows_read - before
        }
    };
    let early = cost(4).await;
    for number in 100..160 {
        stored(&engine, message(number)).await;
        stored(&engine, message_in(77, number, "elsewhere")).await;
    }
    assert_eq!(cost(4).await, early);
    assert_eq!(cost(9).await, early);
}
