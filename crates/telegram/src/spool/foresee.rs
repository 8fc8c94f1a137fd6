//! What rows of the spool would become, without a store, a network or a pause. Pure.
//!
//! Owns no rule of its own: it asks the reading, the waves and the step that the spooler asks. It is how these are tried
//! with any bytes.

use std::collections::{HashSet, VecDeque};

use thought_contract::draft::Draft;
use thought_contract::event::SourceName;
use thought_contract::payload::Image;
use thought_contract::time::Timestamp;
use thought_store::row::SpoolRow;

use super::Fault;
use super::event::{Kept, Step, step};
use super::lane::{read, take_wave};
use crate::admit::Policy;
use crate::notices::Switches;

/// What one unit of rows would become.
#[derive(Debug)]
pub struct Foreseen {
    /// The updates of the unit: one, or the parts of an album, in order of arrival.
    pub updates: Vec<i64>,
    /// The events, in order; none where the unit makes none; or the stable code of what would be set aside.
    pub becomes: Result<Vec<Draft>, &'static str>,
}

/// The photos that somebody says are kept.
struct Said<'a, F>(&'a F);

impl<F: Fn(i64) -> Option<Image>> Kept for Said<'_, F> {
    fn image(&self, update: i64) -> Option<Image> {
        self.0(update)
    }
}

/// What these rows would become, in the order in which they would; every album is taken for whole. `image` tells what was
/// kept of the photo of an update.
pub fn foresee(
    rows: &[SpoolRow],
    policy: &Policy,
    image: &impl Fn(i64) -> Option<Image>,
    source: &SourceName,
    switches: Switches,
    now: Timestamp,
) -> Vec<Foreseen> {
    let mut items: VecDeque<_> = rows.iter().map(|row| read(row, policy)).collect();
    let mut foreseen = Vec::new();
    while !items.is_empty() {
        for unit in take_wave(&mut items, &mut HashSet::new(), |_, _| true) {
            let becomes = match step(&unit, &Said(image), source, switches, now) {
                Ok(Step::Event(draft, notice)) => {
                    Ok([Some(draft), notice].into_iter().flatten().map(|draft| *draft).collect())
                }
                Ok(Step::Refuse(_) | Step::Migrated { .. } | Step::Forget) => Ok(Vec::new()),
                Err(error) => Err(Fault::from(error).code()),
            };
            foreseen.push(Foreseen { updates: unit.updates(), becomes });
        }
    }
    foreseen
}
