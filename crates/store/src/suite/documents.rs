//! Declarations and documents: pointers that move by compare-and-set.

use std::sync::Arc;

use serde_json::json;
use thought_contract::event::SourceName;
use thought_protocol::{DocumentId, EventId, Sensitive, Sha256Hex, VersionId};

use super::world::{AGENT, consumer, declaration, done, refused, scanned, telegram};
use crate::command::{NewVersion, Op};
use crate::engine::{Engine, Precondition};
use crate::row::{Activity, Existence};

pub(super) async fn a_declaration_is_installed_over_the_expected_version(engine: Arc<dyn Engine>) {
    assert!(engine.declaration(AGENT.to_owned()).await.unwrap().is_none());
    done(&engine, vec![Op::InstallDeclaration(declaration(1, None))]).await;
    refused(&engine, vec![Op::InstallDeclaration(declaration(2, None))], Precondition::ActiveVersion).await;
    done(&engine, vec![scanned(4)]).await;
    let mut second = declaration(2, Some(1));
    second.sources = vec![(telegram(), 6), (SourceName::new("telegram:new"), 2)];
    done(&engine, vec![Op::InstallDeclaration(second)]).await;
    let active = engine.declaration(AGENT.to_owned()).await.unwrap().unwrap();
    assert_eq!((active.version, active.activity), (2, Activity::Active));
    assert_eq!(active.prompt.expose(), b"prompt 2");
    let all: Vec<_> =
        engine.declarations().await.unwrap().into_iter().map(|row| (row.version, row.activity)).collect();
    assert_eq!(all, [(1, Activity::Superseded), (2, Activity::Active)]);
    assert_eq!(consumer(&engine).await, (6, 6));
    let versions: Vec<_> = engine.consumers().await.unwrap().iter().map(|row| row.version).collect();
    assert_eq!(versions, [2, 2]);
}

pub(super) async fn versions_only_rise(engine: Arc<dyn Engine>) {
    done(&engine, vec![Op::InstallDeclaration(declaration(3, None))]).await;
    for version in [2, 3] {
        let ops = vec![Op::InstallDeclaration(declaration(version, Some(3)))];
        refused(&engine, ops, Precondition::ActiveVersion).await;
    }
    let mut narrow = declaration(4, Some(3));
    narrow.sources = vec![(SourceName::new("telegram:new"), 0)];
    done(&engine, vec![Op::InstallDeclaration(narrow)]).await;
    let sources: Vec<_> =
        engine.consumers().await.unwrap().iter().map(|row| row.source.to_string()).collect();
    assert_eq!(sources, ["telegram:new"]);
}

fn document(path: &str) -> DocumentId {
    DocumentId::of("document", &[json!(path)])
}

fn version(path: &str, previous: Option<&VersionId>, bytes: &[u8]) -> NewVersion {
    let sha256 = Sha256Hex::of(bytes);
    let id = VersionId::of("version", &[json!(path), json!(previous), json!(sha256)]);
    NewVersion {
        document: document(path),
        previous: previous.cloned(),
        source: SourceName::context(),
        path: path.to_owned(),
        sha256,
        content_type: "text/markdown".to_owned(),
        frontmatter_id: None,
        content: Sensitive::new(bytes.to_vec()),
        event: EventId::of("file", &[json!(id)]),
        version: id,
    }
}

async fn put(engine: &Arc<dyn Engine>, path: &str, previous: Option<&VersionId>, bytes: &[u8]) -> VersionId {
    let new = version(path, previous, bytes);
    let id = new.version.clone();
    done(engine, vec![Op::PutVersion(new)]).await;
    id
}

pub(super) async fn a_version_moves_the_pointer(engine: Arc<dyn Engine>) {
    let first = put(&engine, "memory.md", None, b"a").await;
    let second = put(&engine, "memory.md", Some(&first), b"bb").await;
    let row = engine.document(document("memory.md")).await.unwrap().unwrap();
    assert_eq!((&row.version, row.byte_count, row.existence), (&second, 2, Existence::Present));
    assert_eq!(row.sha256, Sha256Hex::of(b"bb"));
    let kept = engine.version(first.clone()).await.unwrap().unwrap();
    assert_eq!((kept.content.expose().as_slice(), kept.previous), (b"a".as_slice(), None));
    let kept = engine.version(second).await.unwrap().unwrap();
    assert_eq!((kept.previous, kept.byte_count, kept.path.as_str()), (Some(first), 2, "memory.md"));
    assert_eq!(kept.content_type, "text/markdown");
}

pub(super) async fn a_stale_pointer_is_refused(engine: Arc<dyn Engine>) {
    let first = put(&engine, "memory.md", None, b"a").await;
    let second = put(&engine, "memory.md", Some(&first), b"b").await;
    for stale in [version("memory.md", None, b"c"), version("memory.md", Some(&first), b"c")] {
        refused(&engine, vec![Op::PutVersion(stale)], Precondition::DocumentVersion).await;
    }
    let remove = Op::RemoveDocument { document: document("memory.md"), previous: first };
    refused(&engine, vec![remove], Precondition::DocumentVersion).await;
    let absent = Op::RemoveDocument { document: document("other.md"), previous: second.clone() };
    refused(&engine, vec![absent], Precondition::DocumentVersion).await;
    assert_eq!(engine.document(document("memory.md")).await.unwrap().unwrap().version, second);
}

pub(super) async fn going_back_makes_a_third_version(engine: Arc<dyn Engine>) {
    let first = put(&engine, "memory.md", None, b"a").await;
    let second = put(&engine, "memory.md", Some(&first), b"b").await;
    let third = put(&engine, "memory.md", Some(&second), b"a").await;
    assert_ne!(first, third);
    // What was bound to the first version stays stale although the bytes are the same.
    let stale = version("memory.md", Some(&first), b"c");
    refused(&engine, vec![Op::PutVersion(stale)], Precondition::DocumentVersion).await;
    assert_eq!(engine.document(document("memory.md")).await.unwrap().unwrap().version, third);
}

pub(super) async fn a_removed_document_keeps_its_last_version(engine: Arc<dyn Engine>) {
    let first = put(&engine, "memory.md", None, b"a").await;
    let remove = Op::RemoveDocument { document: document("memory.md"), previous: first.clone() };
    done(&engine, vec![remove.clone()]).await;
    let row = engine.document(document("memory.md")).await.unwrap().unwrap();
    assert_eq!((&row.version, row.existence), (&first, Existence::Removed));
    refused(&engine, vec![remove], Precondition::DocumentVersion).await;
    let back = put(&engine, "memory.md", Some(&first), b"a").await;
    let row = engine.document(document("memory.md")).await.unwrap().unwrap();
    assert_eq!((row.version, row.existence), (back, Existence::Present));
}

pub(super) async fn documents_are_listed_by_path(engine: Arc<dyn Engine>) {
    put(&engine, "memory.md", None, b"a").await;
    put(&engine, "identity.md", None, b"b").await;
    let paths: Vec<_> =
        engine.documents(SourceName::context()).await.unwrap().into_iter().map(|row| row.path).collect();
    assert_eq!(paths, ["identity.md", "memory.md"]);
    assert!(engine.documents(SourceName::new("filesystem:other")).await.unwrap().is_empty());
}
