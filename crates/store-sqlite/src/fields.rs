//! Reads columns strictly: what does not decode is named by table and id, never by its value.

use std::str::FromStr;

use rusqlite::Row;
use rusqlite::types::FromSql;
use thought_contract::time::Timestamp;
use thought_protocol::Sensitive;
use thought_store::StoreError;

/// The columns of one row, read from left to right. The first column is the row's id.
pub(crate) struct Fields<'r, 's> {
    row: &'r Row<'s>,
    table: &'static str,
    next: usize,
}

impl<'r, 's> Fields<'r, 's> {
    pub(crate) fn of(table: &'static str, row: &'r Row<'s>) -> Self {
        Self { row, table, next: 0 }
    }

    /// A stored value that cannot be.
    pub(crate) fn corrupt(&self) -> StoreError {
        let id = match self.row.get_ref(0) {
            Ok(rusqlite::types::ValueRef::Text(bytes)) if is_plain(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            Ok(rusqlite::types::ValueRef::Integer(number)) => number.to_string(),
            _ => "of an unreadable id".to_owned(),
        };
        StoreError::Corrupt { what: format!("a row of {} ({id})", self.table) }
    }

    /// The next column as a plain value.
    pub(crate) fn get<T: FromSql>(&mut self) -> Result<T, StoreError> {
        let column = self.next;
        self.next += 1;
        match self.row.get(column) {
            Ok(value) => Ok(value),
            Err(_content_dark) => Err(self.corrupt()),
        }
    }

    /// The next column as text that stays where it is: a history has thousands of them.
    fn text(&mut self) -> Result<Option<&'r str>, StoreError> {
        let column = self.next;
        self.next += 1;
        match self.row.get_ref(column).map(|value| value.as_str_or_null()) {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(_content_dark)) => Err(self.corrupt()),
            Err(_content_dark) => Err(self.corrupt()),
        }
    }

    /// The next column as a type with a written form.
    pub(crate) fn parse<T: FromStr>(&mut self) -> Result<T, StoreError> {
        self.parse_optional()?.ok_or_else(|| self.corrupt())
    }

    /// The next column as a type with a written form, where there is one.
    pub(crate) fn parse_optional<T: FromStr>(&mut self) -> Result<Option<T>, StoreError> {
        self.text()?.map(|text| self.parsed(text)).transpose()
    }

    /// The next column as one of a closed set of words.
    pub(crate) fn word<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Result<T, StoreError> {
        self.text()?.and_then(read).ok_or_else(|| self.corrupt())
    }

    /// The next column as a moment.
    pub(crate) fn time(&mut self) -> Result<Timestamp, StoreError> {
        let ms: i64 = self.get()?;
        self.moment(ms)
    }

    /// The next column as a moment, where there is one.
    pub(crate) fn time_optional(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let ms: Option<i64> = self.get()?;
        ms.map(|ms| self.moment(ms)).transpose()
    }

    /// The next column as content.
    pub(crate) fn content(&mut self) -> Result<Sensitive<Vec<u8>>, StoreError> {
        self.get().map(Sensitive::new)
    }

    fn parsed<T: FromStr>(&self, text: &str) -> Result<T, StoreError> {
        match text.parse() {
            Ok(value) => Ok(value),
            Err(_content_dark) => Err(self.corrupt()),
        }
    }

    fn moment(&self, ms: i64) -> Result<Timestamp, StoreError> {
        let moment = Timestamp::from_ms(ms);
        if moment.ms() == ms { Ok(moment) } else { Err(self.corrupt()) }
    }
}

/// Ids and names are short and made of these characters; anything else might be content and is not repeated.
fn is_plain(bytes: &[u8]) -> bool {
    bytes.len() <= 64 && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-:.".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;
    use thought_protocol::EventId;

    fn error(sql: &str) -> String {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .query_row(sql, [], |row| {
                let mut fields = Fields::of("events", row);
                let parsed = fields.parse::<EventId>().and_then(|_| fields.time());
                Ok(parsed.unwrap_err().to_string())
            })
            .unwrap()
    }

    #[test]
    fn a_row_that_does_not_decode_is_named_and_not_quoted() {
        let whole = format!("evt_{}", "0".repeat(32));
        assert_eq!(
            error(&format!("SELECT '{whole}', -5")),
            format!("read the store: a row of events ({whole}) is not what was written")
        );
        for sql in ["SELECT 'private words of a person', 1", "SELECT x'00', 1", "SELECT NULL, 1"] {
            let shown = error(sql);
            assert!(shown.contains("a row of events (of an unreadable id)"), "{shown}");
        }
        assert!(error("SELECT 7, 1").contains("events (7)"));
    }
}
