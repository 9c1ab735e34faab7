//! Distinction between problems of the database and errors in a statement.

use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

use super::StoreError;

/// A temporary problem of the database, independent of the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The disk is full.
    Full,
    /// The database is busy, restarting or out of reach, or its disk fails.
    Passing,
}

/// Returns the problem of the database that caused an error, or `None` if the statement caused it.
pub fn trouble(error: &StoreError) -> Option<Trouble> {
    match error {
        sqlx::Error::Database(error) => {
            if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
                return postgres_trouble(error.code());
            }
            error.try_downcast_ref::<SqliteError>()?;
            sqlite_trouble(error.code()?.parse().ok()?)
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => Some(Trouble::Passing),
        _ => None,
    }
}

/// Classifies an extended result code, whose low byte is the code (<https://sqlite.org/rescode.html>).
fn sqlite_trouble(extended: u32) -> Option<Trouble> {
    match extended & 0xff {
        13 => Some(Trouble::Full),
        // BUSY, LOCKED, NOMEM, READONLY (a failing disk is mounted read-only), IOERR, CANTOPEN.
        5..=8 | 10 | 14 => Some(Trouble::Passing),
        _ => None,
    }
}

/// Classifies an SQLSTATE, whose first two digits are its class (PostgreSQL, appendix A).
fn postgres_trouble(code: &str) -> Option<Trouble> {
    match code.get(..2)? {
        _ if code == "53100" => Some(Trouble::Full),
        // Connection, transaction rollback, resources, operator intervention, system; a server
        // that is temporarily read-only (25006), a lock that could not be taken (55P03).
        "08" | "40" | "53" | "57" | "58" => Some(Trouble::Passing),
        _ if code == "25006" || code == "55P03" => Some(Trouble::Passing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_problems_are_separated_from_wrong_statements() {
        for (code, found) in [
            (13, Some(Trouble::Full)),
            (5, Some(Trouble::Passing)),           // busy
            (517, Some(Trouble::Passing)),         // busy, a snapshot
            (10 | 3 << 8, Some(Trouble::Passing)), // input or output, writing
            (1, None),                             // a wrong statement
            (19 | 8 << 8, None),                   // a duplicate key
        ] {
            assert_eq!(sqlite_trouble(code), found, "{code}");
        }
        for (code, found) in [
            ("53100", Some(Trouble::Full)),
            ("53300", Some(Trouble::Passing)), // too many connections
            ("57P01", Some(Trouble::Passing)), // shutting down
            ("25006", Some(Trouble::Passing)), // a standby
            ("25001", None),
            ("23505", None), // a duplicate key
            ("42P01", None), // an unknown table
            ("", None),
        ] {
            assert_eq!(postgres_trouble(code), found, "{code}");
        }
    }
}
