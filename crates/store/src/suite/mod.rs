//! The contract suite: what every engine must do, written against the port alone.
//!
//! An engine's own tests call [`run`] for each [`Group`] with a function that makes a fresh, empty engine. A case fails by
//! panicking, with its name in the message. Knows no engine, and looks at nothing but answers.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "this is test code that lives in a library, behind a feature, so that every engine can run it"
)]

mod channels;
mod deliveries;
mod documents;
mod events;
mod handles;
mod history;
mod lists;
mod progress;
mod proposals;
mod review;
mod runs;
mod world;

use std::sync::Arc;

use crate::engine::{BoxFuture, Engine};

/// One thing that an engine must do.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    run: fn(Arc<dyn Engine>) -> BoxFuture<'static, ()>,
}

macro_rules! cases {
    ($module:ident: $($name:ident),* $(,)?) => {
        &[$(Case { name: concat!(stringify!($module), "::", stringify!($name)), run: |engine| Box::pin($module::$name(engine)) }),*]
    };
}

/// A group of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Appends, conflicts, sequences, chains.
    Events,
    /// Runs, attempts, snapshots, budgets.
    Runs,
    /// How far a consumer has come.
    Progress,
    /// Declarations and documents.
    Documents,
    /// Raw updates, refused chats, cursors.
    Channels,
    /// Deliveries and what became of an output.
    Deliveries,
    /// Conversations and their evidence.
    History,
    /// The index of proposals.
    Proposals,
    /// What a person's word leaves.
    Review,
    /// Filters, pages, prefixes, counts.
    Lists,
    /// What each handle may and may not do.
    Handles,
}

impl Group {
    /// Every group.
    pub const ALL: [Self; 11] = [
        Self::Events,
        Self::Runs,
        Self::Progress,
        Self::Documents,
        Self::Channels,
        Self::Deliveries,
        Self::History,
        Self::Proposals,
        Self::Review,
        Self::Lists,
        Self::Handles,
    ];

    /// The cases of this group.
    pub const fn cases(self) -> &'static [Case] {
        match self {
            Self::Events => cases![
                events: an_append_is_read_back_whole, an_equal_append_is_the_first, another_event_of_one_id_conflicts,
                narrow_equality_ignores_the_rest, sequences_are_gapless_and_chains_recompute,
                positions_rise_over_all_sources, equal_appends_race_to_one_event,
                different_events_of_one_id_race_to_one_winner, a_commit_is_all_or_nothing, an_empty_commit_is_success,
                news_tells_of_a_commit,
            ],
            Self::Runs => cases![
                runs: a_run_goes_from_admission_to_its_end, a_run_is_admitted_once, an_attempt_wants_a_snapshot,
                the_same_snapshot_twice_is_success_and_another_is_refused, attempts_come_in_order_and_one_at_a_time,
                an_abandoned_attempt_is_taken_over, a_late_answer_is_discarded, a_settlement_is_all_or_nothing,
                the_daily_budget_counts_requests, only_a_waiting_run_is_held, a_run_ends_once, tokens_add_up_by_day,
            ],
            Self::Progress => cases![
                progress: endings_out_of_order_move_progress_without_a_gap, scanning_moves_progress_when_nothing_is_open,
                scanned_never_goes_down, a_retry_on_an_old_sequence_changes_no_progress,
                sources_and_consumers_do_not_mix, only_an_installed_consumer_scans,
                a_change_is_asked_answered_and_over, a_version_that_takes_over_begins_before_what_is_open,
            ],
            Self::Documents => cases![
                documents: a_declaration_is_installed_over_the_expected_version, versions_only_rise,
                a_version_moves_the_pointer, a_stale_pointer_is_refused, going_back_makes_a_third_version,
                a_removed_document_keeps_its_last_version, documents_are_listed_by_path,
            ],
            Self::Channels => cases![
                channels: an_update_is_spooled_once, updates_come_in_order_of_arrival, a_parked_update_waits_no_longer,
                an_admitted_update_leaves_the_spool, refused_chats_keep_the_newest_eight, a_cursor_never_goes_back,
            ],
            Self::Deliveries => cases![
                deliveries: a_delivery_goes_chunk_by_chunk, a_delivery_is_opened_once, a_chunk_moves_only_from_where_it_stands,
                an_uncertain_chunk_is_confirmed_or_sent_again, a_chunk_that_was_not_sent_waits_and_is_sent_again,
                a_refused_delivery_stays_unfinished, what_became_of_an_output, notices_and_replies_of_one_cause_are_apart,
            ],
            Self::History => cases![
                history: turns_come_oldest_first_up_to_the_limit, conversations_count_their_own_turns,
                a_turn_carries_its_evidence, only_the_named_agents_are_history, the_newest_judgment_counts,
                history_costs_what_it_shows,
                a_context_is_what_its_parts_are,
            ],
            Self::Proposals => cases![
                proposals: a_settled_proposal_waits, a_focus_is_inert_and_waits_for_nobody, proposals_are_filtered_and_paged,
                a_moved_document_makes_a_base_stale, a_proposal_moves_only_from_where_it_stands,
                a_proposal_enters_the_index_once_and_with_its_event, a_settlement_that_fails_tracks_nothing,
                the_index_costs_what_it_answers,
            ],
            Self::Review => cases![
                review: a_persons_correction_is_settled_once, a_reply_is_found_by_its_message_and_by_its_chat,
                an_intent_is_kept_until_it_is_forgotten, one_judgment_stands_on_an_output,
                a_decision_is_made_once, a_rejection_leaves_nothing_to_do,
                a_receipt_forgets_its_intent_and_moves_its_proposal,
            ],
            Self::Lists => cases![
                lists: events_are_filtered_and_paged, types_are_merged_in_order, events_of_a_root_and_children,
                runs_are_filtered_and_paged, ids_are_found_by_prefix, counts_are_exact, nothing_is_there_at_first,
            ],
            Self::Handles => cases![
                handles: another_roles_events_are_refused, a_settlement_is_built_whole, ingress_admits_and_forgets,
                a_consumer_lives_its_run, mail_converges_and_conflicts,
            ],
        }
    }
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Runs every case of a group, each on a fresh engine. Wants a tokio runtime.
pub async fn run(group: Group, make: impl Fn() -> BoxFuture<'static, Arc<dyn Engine>>) {
    for case in group.cases() {
        let engine = make().await;
        let outcome = tokio::spawn((case.run)(engine)).await;
        assert!(outcome.is_ok(), "the engine does not hold the contract: {}", case.name);
    }
}

/// Runs every case of every group.
pub async fn run_all(make: impl Fn() -> BoxFuture<'static, Arc<dyn Engine>>) {
    for group in Group::ALL {
        run(group, &make).await;
    }
}
