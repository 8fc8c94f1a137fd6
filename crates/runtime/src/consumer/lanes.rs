//! The window of admitted runs that a consumer keeps in mind, as lanes: one conversation each, served one run at a
//! time, in source order.
//!
//! Pure and bounded: it holds names of runs, never their content.

use std::collections::{BTreeMap, HashSet, VecDeque};

use thought_contract::event::SourceName;
use thought_protocol::RunId;

use crate::limits::WINDOW_RUNS_MAX;
use crate::run::{Admissions, RunRef, Ticket};

/// A conversation within a source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LaneKey {
    pub(crate) source: SourceName,
    pub(crate) conversation: String,
}

/// What a lane is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its first run may be taken. `Again` where that one was held before, and is only looked at once more.
    Ready(Look),
    /// Its first run is being carried on.
    Active,
    /// Its first run is held.
    Held,
    /// Its first run could not be carried on, and is taken again after a rest.
    Resting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    First,
    Again,
}

#[derive(Debug)]
struct Lane {
    state: State,
    waiting: VecDeque<(u64, Ticket)>,
}

/// All lanes.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: BTreeMap<LaneKey, Lane>,
    known: HashSet<RunId>,
    active: usize,
    arrivals: u64,
}

impl Lanes {
    /// Whether another run fits.
    pub(crate) fn has_room(&self) -> bool {
        self.known.len() < WINDOW_RUNS_MAX
    }

    /// Whether the window holds this run.
    pub(crate) fn knows(&self, run: &RunId) -> bool {
        self.known.contains(run)
    }

    /// How many runs are being carried on.
    pub(crate) fn active(&self) -> usize {
        self.active
    }

    /// Whether a run of this conversation would be taken at once, given a free place.
    pub(crate) fn is_free(&self, key: &LaneKey) -> bool {
        !self.lanes.contains_key(key)
    }

    /// Whether a held run waits for its cause to go away.
    pub(crate) fn any_held(&self) -> bool {
        self.lanes.values().any(|lane| matches!(lane.state, State::Held | State::Ready(Look::Again)))
    }

    /// Whether nothing is at work or waits to be: every lane is held.
    pub(crate) fn is_quiet(&self) -> bool {
        self.lanes.values().all(|lane| lane.state == State::Held)
    }

    /// Whether a run rests after a failure.
    pub(crate) fn any_resting(&self) -> bool {
        self.lanes.values().any(|lane| lane.state == State::Resting)
    }

    /// Adds a run at its place in the conversation: behind all of lower sequence, never before the one at work.
    pub(crate) fn push(&mut self, key: LaneKey, ticket: Ticket) {
        if !self.known.insert(ticket.run.id.clone()) {
            return;
        }
        self.arrivals += 1;
        let lane = self
            .lanes
            .entry(key)
            .or_insert_with(|| Lane { state: State::Ready(Look::First), waiting: VecDeque::new() });
        let order = |run: &RunRef| (run.sequence, run.retry);
        let fixed = usize::from(!matches!(lane.state, State::Ready(Look::First)));
        let at =
            lane.waiting.iter().skip(fixed).position(|(_, other)| order(&other.run) > order(&ticket.run));
        let at = at.map_or(lane.waiting.len(), |at| at + fixed);
        lane.waiting.insert(at, (self.arrivals, ticket));
    }

    /// Takes up the run that has waited longest among those at the head of a ready lane.
    pub(crate) fn take(&mut self) -> Option<(LaneKey, Ticket)> {
        let (key, lane) = self
            .lanes
            .iter_mut()
            .filter(|(_, lane)| matches!(lane.state, State::Ready(_)))
            .min_by_key(|(_, lane)| lane.waiting.front().map_or(u64::MAX, |(arrival, _)| *arrival))?;
        let (_, ticket) = lane.waiting.front()?;
        lane.state = State::Active;
        self.active += 1;
        Some((key.clone(), ticket.clone()))
    }

    /// The run at work has ended: the next of its lane is ready.
    pub(crate) fn done(&mut self, key: &LaneKey) {
        self.active = self.active.saturating_sub(1);
        let Some(lane) = self.lanes.get_mut(key) else { return };
        if let Some((_, ticket)) = lane.waiting.pop_front() {
            self.known.remove(&ticket.run.id);
        }
        lane.state = State::Ready(Look::First);
        if lane.waiting.is_empty() {
            self.lanes.remove(key);
        }
    }

    /// The run at work is held. Causes are the consumer's, so lanes that only look again stay held as well.
    pub(crate) fn held(&mut self, key: &LaneKey) {
        self.settle_at_head(key, State::Held);
        for lane in self.lanes.values_mut() {
            if lane.state == State::Ready(Look::Again) {
                lane.state = State::Held;
            }
        }
    }

    /// Held lanes look again.
    pub(crate) fn look_again(&mut self) {
        self.turn(State::Held, State::Ready(Look::Again));
    }

    /// The run at work could not be carried on.
    pub(crate) fn rest(&mut self, key: &LaneKey) {
        self.settle_at_head(key, State::Resting);
    }

    /// Resting lanes are ready.
    pub(crate) fn rested(&mut self) {
        self.turn(State::Resting, State::Ready(Look::First));
    }

    fn turn(&mut self, from: State, to: State) {
        self.lanes.values_mut().filter(|lane| lane.state == from).for_each(|lane| lane.state = to);
    }

    /// What stays at the head lets go of its trigger's words: they are read again.
    fn settle_at_head(&mut self, key: &LaneKey, state: State) {
        self.active = self.active.saturating_sub(1);
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.state = state;
            if let Some((_, ticket)) = lane.waiting.front_mut() {
                ticket.trigger = None;
            }
        }
    }

    /// Every admission that may not be committed yet.
    pub(crate) fn admissions(&self) -> Vec<Admissions> {
        self.lanes
            .values()
            .flat_map(|lane| lane.waiting.iter().map(|(_, ticket)| ticket.admissions.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use thought_protocol::EventId;

    use super::*;

    fn key(conversation: &str) -> LaneKey {
        LaneKey { source: SourceName::new("telegram:stream"), conversation: conversation.to_owned() }
    }

    fn ticket(sequence: u64, retry: u32) -> Ticket {
        let run = RunRef {
            id: RunId::of("run", &[json!(sequence), json!(retry)]),
            trigger: EventId::of("t", &[json!(sequence)]),
            source: SourceName::new("telegram:stream"),
            sequence,
            retry,
        };
        Ticket { run, trigger: None, admissions: Admissions::default() }
    }

    #[test]
    fn a_conversation_is_served_one_run_at_a_time_in_source_order() {
        let mut lanes = Lanes::default();
        for sequence in [1, 2, 3] {
            lanes.push(key("a"), ticket(sequence, 0));
        }
        lanes.push(key("a"), ticket(2, 1));
        lanes.push(key("b"), ticket(4, 0));
        let mut served = Vec::new();
        while let Some((key, ticket)) = lanes.take() {
            served.push((key.conversation.clone(), ticket.run.sequence, ticket.run.retry));
            if key.conversation == "a" {
                lanes.done(&key);
            }
        }
        let a: Vec<_> = served.iter().filter(|(lane, ..)| lane == "a").map(|(_, s, r)| (*s, *r)).collect();
        assert_eq!(a, [(1, 0), (2, 0), (2, 1), (3, 0)]);
        assert_eq!(lanes.active(), 1);
        assert!(!lanes.is_free(&key("b")) && lanes.is_free(&key("a")));
    }

    #[test]
    fn a_run_at_work_is_never_overtaken() {
        let mut lanes = Lanes::default();
        lanes.push(key("a"), ticket(5, 0));
        let (lane, _) = lanes.take().unwrap();
        lanes.push(key("a"), ticket(1, 1));
        lanes.done(&lane);
        assert_eq!(lanes.take().unwrap().1.run.sequence, 1);
    }

    #[test]
    fn held_lanes_look_again_together_and_the_first_refusal_holds_the_rest() {
        let mut lanes = Lanes::default();
        for lane in ["a", "b", "c"] {
            lanes.push(key(lane), ticket(u64::from(lane.as_bytes()[0]), 0));
        }
        for _ in 0..3 {
            let (lane, _) = lanes.take().unwrap();
            lanes.held(&lane);
        }
        assert!(lanes.take().is_none() && lanes.any_held());
        lanes.look_again();
        let (lane, _) = lanes.take().unwrap();
        lanes.held(&lane);
        assert!(lanes.take().is_none());
        lanes.look_again();
        let (lane, _) = lanes.take().unwrap();
        lanes.done(&lane);
        assert!(lanes.take().is_some() && lanes.take().is_some() && lanes.take().is_none());
    }

    #[test]
    fn the_window_is_bounded_and_knows_a_run_once() {
        let mut lanes = Lanes::default();
        for sequence in 0..WINDOW_RUNS_MAX as u64 {
            assert!(lanes.has_room());
            lanes.push(key("a"), ticket(sequence, 0));
            lanes.push(key("a"), ticket(sequence, 0));
        }
        assert!(!lanes.has_room());
        let (lane, first) = lanes.take().unwrap();
        lanes.done(&lane);
        assert!(lanes.has_room() && !lanes.knows(&first.run.id));
    }

    #[test]
    fn a_failed_run_rests_and_is_taken_again() {
        let mut lanes = Lanes::default();
        lanes.push(key("a"), ticket(1, 0));
        let (lane, _) = lanes.take().unwrap();
        lanes.rest(&lane);
        assert!(lanes.any_resting() && lanes.take().is_none());
        lanes.rested();
        assert_eq!(lanes.take().unwrap().1.run.sequence, 1);
    }
}
