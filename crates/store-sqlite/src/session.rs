//! A connection with its counters: the one place where rows are read and written, and counted.

use rusqlite::{CachedStatement, Connection, Params, Row, StatementStatus};
use thought_store::StoreError;

use crate::counters::Totals;
use crate::failure;

/// What every statement of the engine goes through.
#[derive(Clone, Copy)]
pub(crate) struct Session<'a> {
    connection: &'a Connection,
    totals: &'a Totals,
}

impl<'a> Session<'a> {
    pub(crate) fn new(connection: &'a Connection, totals: &'a Totals) -> Self {
        Self { connection, totals }
    }

    /// The same counters over another connection.
    pub(crate) fn elsewhere<'b>(&self, connection: &'b Connection) -> Session<'b>
    where
        'a: 'b,
    {
        Session { connection, totals: self.totals }
    }

    /// The first row of a query, read strictly.
    pub(crate) fn first<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let fail = failure::during("read");
        let mut statement = self.connection.prepare_cached(sql).map_err(&fail)?;
        let mut rows = statement.query(params).map_err(&fail)?;
        let value = match rows.next().map_err(&fail)? {
            Some(row) => {
                Totals::add(&self.totals.rows_read, 1);
                Some(read(row)?)
            }
            None => None,
        };
        drop(rows);
        self.weigh(&statement);
        Ok(value)
    }

    /// All rows of a query, read strictly.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let fail = failure::during("read");
        let mut statement = self.connection.prepare_cached(sql).map_err(&fail)?;
        let mut rows = statement.query(params).map_err(&fail)?;
        let mut values = Vec::new();
        while let Some(row) = rows.next().map_err(&fail)? {
            Totals::add(&self.totals.rows_read, 1);
            values.push(read(row)?);
        }
        drop(rows);
        self.weigh(&statement);
        Ok(values)
    }

    /// Writes, and says how many rows were written.
    pub(crate) fn write(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        let fail = failure::during("write");
        let mut statement = self.connection.prepare_cached(sql).map_err(&fail)?;
        let rows = statement.execute(params).map_err(&fail)?;
        Totals::add(&self.totals.rows_written, rows as u64);
        self.weigh(&statement);
        Ok(rows)
    }

    /// Adds what SQLite itself did for a statement: a filter that looks at rows and drops them shows here alone.
    fn weigh(&self, statement: &CachedStatement<'_>) {
        let steps = statement.reset_status(StatementStatus::VmStep);
        Totals::add(&self.totals.steps, u64::from(steps.unsigned_abs()));
    }

    /// The row id of the row inserted last.
    pub(crate) fn inserted(&self) -> i64 {
        self.connection.last_insert_rowid()
    }
}
