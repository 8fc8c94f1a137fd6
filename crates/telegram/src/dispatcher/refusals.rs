//! Corrections that matched nothing: the one thing a chat hears of that no event tells.
//!
//! The authority's room keeps what became of each `/correct`; the refused ones are followed here in the order in which they
//! were looked at, by a cursor of their own.

use thought_store::StoreError;

use super::board::{Begin, Job};
use super::letter::refusal_letter;
use super::{Dispatcher, Log, Shift};
use crate::limits::DISPATCH_PAGE;

impl Dispatcher {
    /// Reads one page of them.
    pub(super) async fn read_refusals(&self, shift: &mut Shift) -> Result<Log, StoreError> {
        let desk = &self.desk;
        let page = desk.reader.refused_corrections(shift.refusals.read(), DISPATCH_PAGE).await?;
        let log = if page.len() as u64 >= u64::from(DISPATCH_PAGE) { Log::More } else { Log::AllRead };
        let mut skipped = 0_u32;
        for row in page {
            let letter = match desk.reader.event(row.command.clone()).await? {
                Some(command) => refusal_letter(desk.ledger.channel(), desk.switches, &command),
                None => Ok(None),
            };
            match letter {
                Ok(Some(letter)) => {
                    shift.refusals.add(row.ordinal);
                    let begin = Begin::Refusal { ordinal: row.ordinal };
                    shift.board.push(Job { letter, begin, event: None });
                }
                Ok(None) => {
                    shift.refusals.skip(row.ordinal);
                    skipped += 1;
                }
                Err(error) => {
                    // Refused for just that: nobody knows where to say it.
                    tracing::warn!(command = %row.command, error = %error, "a refused command cannot be answered");
                    shift.refusals.skip(row.ordinal);
                    skipped += 1;
                }
            }
        }
        // They are rare, and a switch that is turned on later must not bring up old ones.
        if skipped > 0 {
            desk.ledger.advance_refusals(shift.refusals.cursor()).await?;
        }
        Ok(log)
    }
}
