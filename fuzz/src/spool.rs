//! Rows of the spool, one on each line, as updates of one bot: they are ordered, gathered into albums and become what they
//! become without a store.
//!
//! Every row is in one unit, the rows of a chat keep their order, whatever becomes an event has a payload that reads back,
//! and the same rows become the same events again. What is told of them does not quote them.

use std::collections::BTreeSet;

use thought_contract::draft::Draft;
use thought_contract::event::{EventType, SourceName};
use thought_contract::payload::{Image, NoticeRequested, TelegramCommand, TelegramMessage};
use thought_contract::time::Timestamp;
use thought_protocol::{Sensitive, Sha256Hex};
use thought_store::row::SpoolRow;
use thought_telegram::notices::Switches;
use thought_telegram::spool::{Foreseen, foresee};

use super::updates::POLICIES;
use super::{Seen, is_dark};

const ROWS_MAX: usize = 64;

/// Reads one input.
pub fn read(data: &[u8]) -> Seen {
    let lines = data.split(|byte| *byte == b'\n').take(ROWS_MAX);
    let rows: Vec<SpoolRow> = (1_u32..)
        .zip(lines)
        .map(|(number, body)| SpoolRow {
            ordinal: number.into(),
            update: number.into(),
            body: Sensitive::new(body.to_vec()),
            tries: 0,
            arrived_at: Timestamp::from_ms(0),
        })
        .collect();
    let mut events = 0;
    for (policy, notices) in POLICIES.iter().zip([true, false, true]) {
        let switches = Switches { failure_notice: true, notices };
        let source = SourceName::new("telegram:stream");
        let look = || foresee(&rows, policy, &image, &source, switches, Timestamp::from_ms(9));
        let units = look();
        let seen: Vec<i64> = units.iter().flat_map(|unit| unit.updates.iter().copied()).collect();
        assert_eq!(seen.len(), rows.len());
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>().len(), rows.len());
        assert!(units.iter().all(|unit| unit.updates.is_sorted()));
        is_dark(&units);
        units.iter().flat_map(drafted).for_each(reads_back);
        events += units.iter().flat_map(drafted).count();
        let ids = |units: &[Foreseen]| -> Vec<_> {
            units
                .iter()
                .map(|unit| drafted(unit).iter().map(Draft::id).cloned().collect::<Vec<_>>())
                .collect()
        };
        assert_eq!(ids(&look()), ids(&units));
    }
    if events > 0 { Seen::Taken } else { Seen::Refused }
}

/// The photos of odd updates could be had.
fn image(update: i64) -> Option<Image> {
    let blob_sha256 = Sha256Hex::of(&update.to_be_bytes());
    let media_type = "image/png".to_owned();
    (update % 2 == 1).then_some(Image { blob_sha256, media_type, byte_count: 8, width: 1, height: 2 })
}

fn drafted(unit: &Foreseen) -> &[Draft] {
    unit.becomes.as_deref().unwrap_or_default()
}

fn reads_back(draft: &Draft) {
    let payload = draft.payload().expose();
    let is_read = match draft.event_type() {
        EventType::TelegramMessage => serde_json::from_slice::<TelegramMessage>(payload)
            .is_ok_and(|message| message.text.is_some() || !message.images.is_empty()),
        EventType::TelegramCommand => serde_json::from_slice::<TelegramCommand>(payload).is_ok(),
        EventType::NoticeRequested => serde_json::from_slice::<NoticeRequested>(payload).is_ok(),
        _ => false,
    };
    assert!(is_read, "{} does not read back", draft.event_type());
}
