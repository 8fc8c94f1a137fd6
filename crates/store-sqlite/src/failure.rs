//! Turns failures of SQLite into the port's errors.
//!
//! Only result codes get through: SQLite's messages can quote SQL and values.

use rusqlite::ErrorCode;
use thought_store::StoreError;

/// `SQLITE_IOERR_SHMSIZE`: the shared index of the log could not grow, which is what a full disk looks like there.
const SHARED_INDEX_CANNOT_GROW: i32 = 4874;

/// The port's error for a failed operation.
pub(crate) fn of(operation: &'static str, error: &rusqlite::Error) -> StoreError {
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return StoreError::Engine { operation, what: kind(error).to_owned() };
    };
    let code = failure.extended_code;
    match failure.code {
        ErrorCode::DiskFull => StoreError::NoSpace,
        ErrorCode::SystemIoFailure if code == SHARED_INDEX_CANNOT_GROW => StoreError::NoSpace,
        ErrorCode::DatabaseCorrupt => StoreError::Corrupt { what: "the database file".to_owned() },
        ErrorCode::NotADatabase => unreachable("the file is no database"),
        ErrorCode::CannotOpen => unreachable("the database cannot be opened"),
        ErrorCode::PermissionDenied => unreachable("access is denied"),
        ErrorCode::ReadOnly => unreachable("the database can only be read"),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            StoreError::Engine { operation, what: "another process held the store for too long".to_owned() }
        }
        ErrorCode::SystemIoFailure => {
            StoreError::Engine { operation, what: format!("input or output failed, code {code}") }
        }
        _ => StoreError::Engine { operation, what: format!("SQLite says code {code}") },
    }
}

/// A function that names the operation for `map_err`.
pub(crate) fn during(operation: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| of(operation, &error)
}

/// Whether another connection was in the way.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// A store that cannot be reached.
pub(crate) fn unreachable(what: &str) -> StoreError {
    StoreError::Unreachable { what: what.to_owned() }
}

/// An engine failure of our own making.
pub(crate) fn engine(operation: &'static str, what: &str) -> StoreError {
    StoreError::Engine { operation, what: what.to_owned() }
}

/// The same error once more: everyone who took part in a transaction is told why it failed.
pub(crate) fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::NoSpace => StoreError::NoSpace,
        StoreError::Corrupt { what } => StoreError::Corrupt { what: what.clone() },
        StoreError::Unreachable { what } => StoreError::Unreachable { what: what.clone() },
        StoreError::Engine { operation, what } => StoreError::Engine { operation, what: what.clone() },
        other => StoreError::Engine { operation: "commit", what: other.to_string() },
    }
}

fn kind(error: &rusqlite::Error) -> &'static str {
    match error {
        rusqlite::Error::QueryReturnedNoRows => "a row is missing",
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => "a stored value has another form",
        rusqlite::Error::ToSqlConversionFailure(_) => "a value is outside what a column holds",
        rusqlite::Error::SqlInputError { .. } => "a statement is not understood",
        _ => "an unexpected kind of failure",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn sqlite(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("canary-value".to_owned()))
    }

    #[test]
    fn a_full_disk_has_two_faces() {
        assert!(matches!(of("commit", &sqlite(ffi::SQLITE_FULL)), StoreError::NoSpace));
        assert!(matches!(of("commit", &sqlite(SHARED_INDEX_CANNOT_GROW)), StoreError::NoSpace));
        assert!(matches!(of("commit", &sqlite(ffi::SQLITE_IOERR)), StoreError::Engine { .. }));
    }

    #[test]
    fn no_message_of_sqlite_gets_through() {
        for code in 1..=27 {
            let error = of("commit", &sqlite(code));
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
        assert!(is_busy(&sqlite(ffi::SQLITE_BUSY)));
        assert!(!is_busy(&sqlite(ffi::SQLITE_FULL)));
    }

    #[test]
    fn an_error_can_be_told_to_everyone() {
        let error = engine("commit", "input or output failed");
        assert_eq!(again(&error).to_string(), error.to_string());
        assert!(matches!(again(&StoreError::NoSpace), StoreError::NoSpace));
    }
}
