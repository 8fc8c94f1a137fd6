//! Raw updates, refused chats, cursors.

use std::sync::Arc;

use thought_contract::event::SourceName;
use thought_protocol::Sensitive;

use super::world::{append, done, message, telegram};
use crate::command::Op;
use crate::engine::Engine;
use crate::row::SpoolCounts;

fn put(update: i64, body: &str) -> Op {
    Op::SpoolPut { channel: telegram(), update, body: Sensitive::new(body.as_bytes().to_vec()) }
}

fn counts(pending: u64, parked: u64, dropped: u64) -> SpoolCounts {
    SpoolCounts { pending, parked, dropped }
}

async fn updates(engine: &Arc<dyn Engine>) -> Vec<i64> {
    engine.spool(telegram(), 100).await.unwrap().iter().map(|row| row.update).collect()
}

pub(super) async fn an_update_is_spooled_once(engine: Arc<dyn Engine>) {
    done(&engine, vec![put(5, "first"), put(5, "second")]).await;
    done(&engine, vec![put(5, "third")]).await;
    let rows = engine.spool(telegram(), 10).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].body.expose().as_slice(), rows[0].tries), (b"first".as_slice(), 0));
    let other = SourceName::new("telegram:other");
    assert!(engine.spool(other.clone(), 10).await.unwrap().is_empty());
    assert_eq!(engine.spool_counts(other).await.unwrap(), counts(0, 0, 0));
}

pub(super) async fn updates_come_in_order_of_arrival(engine: Arc<dyn Engine>) {
    done(&engine, vec![put(900, "a"), put(3, "b")]).await;
    done(&engine, vec![put(901, "c")]).await;
    assert_eq!(updates(&engine).await, [900, 3, 901]);
    let first: Vec<_> = engine.spool(telegram(), 2).await.unwrap().iter().map(|row| row.update).collect();
    assert_eq!(first, [900, 3]);
    done(&engine, vec![Op::SpoolDelete { channel: telegram(), update: 900 }]).await;
    done(&engine, vec![Op::SpoolDelete { channel: telegram(), update: 900 }, put(1, "d")]).await;
    assert_eq!(updates(&engine).await, [3, 901, 1]);
}

pub(super) async fn a_parked_update_waits_no_longer(engine: Arc<dyn Engine>) {
    done(&engine, vec![put(1, "a"), put(2, "b")]).await;
    let failed = |park| vec![Op::SpoolFailed { channel: telegram(), update: 1, park }];
    for _ in 0..4 {
        done(&engine, failed(false)).await;
    }
    assert_eq!(engine.spool(telegram(), 10).await.unwrap()[0].tries, 4);
    assert_eq!(engine.spool_counts(telegram()).await.unwrap(), counts(2, 0, 0));
    done(&engine, failed(true)).await;
    assert_eq!(updates(&engine).await, [2]);
    assert_eq!(engine.spool_counts(telegram()).await.unwrap(), counts(1, 1, 0));
    done(&engine, vec![put(1, "again")]).await;
    assert_eq!(updates(&engine).await, [2]);
}

pub(super) async fn an_admitted_update_leaves_the_spool(engine: Arc<dyn Engine>) {
    done(&engine, vec![put(1, "a")]).await;
    let admit = vec![append(message(1)), Op::SpoolDelete { channel: telegram(), update: 1 }];
    done(&engine, admit.clone()).await;
    assert!(updates(&engine).await.is_empty());
    // The same update comes a second time: it is spooled, and finds its event.
    done(&engine, vec![put(1, "a")]).await;
    done(&engine, admit).await;
    assert!(updates(&engine).await.is_empty());
    assert_eq!(engine.event_count().await.unwrap(), 1);
}

pub(super) async fn refused_chats_keep_the_newest_eight(engine: Arc<dyn Engine>) {
    for chat in [1, 2, 3, 4, 5, 6, 7, 8, 1, 9] {
        let op = Op::CountRefusedChat { channel: telegram(), chat, kind: "group".to_owned() };
        done(&engine, vec![op]).await;
    }
    let rows = engine.refused_chats(telegram()).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.chat).collect::<Vec<_>>(), [9, 1, 8, 7, 6, 5, 4, 3]);
    assert_eq!((rows[1].count, rows[0].count, rows[0].kind.as_str()), (2, 1, "group"));
    assert_eq!(engine.spool_counts(telegram()).await.unwrap(), counts(0, 0, 10));
}

pub(super) async fn a_cursor_never_goes_back(engine: Arc<dyn Engine>) {
    let set = |position| vec![Op::SetCursor { name: "dispatcher:telegram:stream".to_owned(), position }];
    assert_eq!(engine.cursor("dispatcher:telegram:stream".to_owned()).await.unwrap(), 0);
    for (position, expected) in [(5, 5), (3, 5), (9, 9)] {
        done(&engine, set(position)).await;
        assert_eq!(engine.cursor("dispatcher:telegram:stream".to_owned()).await.unwrap(), expected);
    }
    assert_eq!(engine.cursor("another".to_owned()).await.unwrap(), 0);
}
