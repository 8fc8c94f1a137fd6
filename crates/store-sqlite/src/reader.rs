//! The readers: threads with read-only connections that answer one request at a time.
//!
//! A request that takes several statements sees one state of the store. None leaves a transaction open.

use std::sync::Arc;

use rusqlite::{Connection, TransactionBehavior};
use thought_store::StoreError;

use crate::counters::{PageProbe, Totals};
use crate::failure;
use crate::open::PageCounting;
use crate::queue::Queue;
use crate::session::Session;

/// A request, with its answer's channel inside.
pub(crate) type Request = Box<dyn FnOnce(&mut Reader) + Send>;

/// Everything that a reader thread owns.
pub(crate) struct Reader {
    pub(crate) connection: Connection,
    pub(crate) totals: Arc<Totals>,
    pub(crate) page_counting: PageCounting,
}

impl Reader {
    /// Serves requests until the queue is closed.
    pub(crate) fn run(mut self, queue: &Queue<Request>) {
        while let Some(request) = queue.take() {
            request(&mut self);
        }
    }

    /// Answers one request from one state of the store.
    pub(crate) fn answer<T>(
        &mut self,
        read: impl FnOnce(Session<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let probe = PageProbe::begin(self.page_counting);
        let fail = failure::during("read");
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Deferred).map_err(&fail)?;
        let value = read(Session::new(&transaction, &self.totals));
        let ended = transaction.finish().map_err(&fail);
        probe.end(&self.totals);
        value.and_then(|value| ended.map(|()| value))
    }
}
