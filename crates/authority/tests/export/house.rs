//! A world with judged answers, and a folder that an export may lie in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use thought_authority::correct::{Corrections, Settled};
use thought_authority::export::{self, ExportError, Report, Request, Scope, Watcher};
use thought_contract::draft;
use thought_contract::payload as p;
use thought_protocol::EventId;
use thought_store::NoImages;

use crate::world::{Ask, Still, Turn, World, at, telegram};

/// Nothing is watched.
pub(crate) struct Unwatched;

impl Watcher for Unwatched {}

pub(crate) struct House {
    pub(crate) world: World,
    pub(crate) folder: TempDir,
}

impl House {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self { world: World::new().await, folder }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Names in the folder of exports.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(crate) async fn try_export(
        &self,
        scope: Scope,
        name: &str,
        watcher: &dyn Watcher,
    ) -> Result<Report, ExportError> {
        let output = self.at(name);
        let request = Request { scope, output: &output, tool_version: "0.0.0" };
        export::export((&self.world.side.reader, &NoImages), request, watcher).await
    }

    /// Exports privately, and gives what is counted as left out.
    pub(crate) async fn excluded(&self, name: &str) -> (u64, Vec<(String, u64)>) {
        let report = self.try_export(Scope::Private, name, &Unwatched).await.unwrap();
        (report.manifest.included, report.manifest.excluded.into_iter().collect())
    }

    /// The lines of a file.
    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.at(name)).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A person corrects the reply to a turn of this number; the judgment.
    pub(crate) async fn correct(&self, message: i64, turn_number: i64, words: &str) -> EventId {
        let payload = p::TelegramCommand {
            chat_id: 4242,
            thread_id: None,
            message_id: message,
            user_id: 4242,
            command: "correct".to_owned(),
            argument: Some(words.to_owned()),
            reply_to_message_id: Some(5_000 + turn_number),
        };
        let draft = draft::telegram_command(&telegram(), 7, &payload, at(4)).unwrap();
        self.world.side.store.telegram_ingress(telegram()).admit(&[], draft).await.unwrap();
        let handles = (self.world.side.reader.clone(), self.world.side.store.judgments());
        let mut settled = Corrections::new(handles, Arc::new(Still)).catch_up().await.unwrap();
        match settled.remove(0) {
            Settled::Judged { judgment, .. } => judgment,
            other @ Settled::Refused { .. } => panic!("{other:?}"),
        }
    }

    /// A turn in which the model corrects the answer of an earlier one; its proposal.
    pub(crate) async fn corrects_itself(&self, number: i64, of: &Turn, words: &str) -> (Turn, EventId) {
        let turn = self.world.side.turn(number, &[Ask::Correct(of.output.clone(), words.to_owned())]).await;
        let proposal = turn.only();
        (turn, proposal)
    }

    /// A proposal that a person lets through; the judgment.
    pub(crate) async fn let_through(&self, proposal: &EventId) -> EventId {
        self.world.side.accept(proposal).await;
        self.world.side.project(proposal).await.evidence.unwrap()
    }
}
