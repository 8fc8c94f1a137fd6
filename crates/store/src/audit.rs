//! What an audit of the whole store says: how much it looked at, where every source stands, and what is not what was
//! written.

use crate::row::SourceRow;

/// Findings that an audit names one by one; of more it tells the number.
pub const FINDINGS_MAX: usize = 200;

/// Something that is not what was written. Content-dark: a row is named by its id or place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The table, or `store` for the file as a whole.
    pub table: &'static str,
    /// Id, name or place of the row.
    pub row: String,
    /// Stable word for what is wrong with it.
    pub fault: &'static str,
}

/// What an audit came to. It changes nothing.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// Events looked at.
    pub events: u64,
    /// Rules that were held against the rows beside the log.
    pub rules: u64,
    /// Every source with its head, as its own events say.
    pub sources: Vec<SourceRow>,
    /// What was found, at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub more: u64,
}

impl Audit {
    /// Adds a finding.
    pub fn found(&mut self, table: &'static str, row: impl Into<String>, fault: &'static str) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { table, row: row.into(), fault });
        } else {
            self.more += 1;
        }
    }

    /// Adds a finding unless something holds.
    pub fn check(&mut self, holds: bool, table: &'static str, row: impl Into<String>, fault: &'static str) {
        if !holds {
            self.found(table, row, fault);
        }
    }

    /// Whether everything is what was written.
    pub fn is_whole(&self) -> bool {
        self.findings.is_empty()
    }
}
