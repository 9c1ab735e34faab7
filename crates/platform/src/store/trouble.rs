//! What an error says of the database, rather than of what was asked of it.

use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

use super::StoreError;

/// What keeps a database from working for a while, whatever is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no room left.
    Full,
    /// It is busy, restarting, out of reach, or its disk fails.
    Passing,
}

/// What an error says of the database, rather than of what was asked of it.
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

/// Of an extended result code, whose low byte is the code (<https://sqlite.org/rescode.html>).
fn sqlite_trouble(extended: u32) -> Option<Trouble> {
    match extended & 0xff {
        13 => Some(Trouble::Full),
        // BUSY, LOCKED, NOMEM, READONLY (a disk that fails is mounted so), IOERR, CANTOPEN.
        5..=8 | 10 | 14 => Some(Trouble::Passing),
        _ => None,
    }
}

/// Of an SQLSTATE, whose first two digits are its class (PostgreSQL, appendix A).
fn postgres_trouble(code: &str) -> Option<Trouble> {
    match code.get(..2)? {
        _ if code == "53100" => Some(Trouble::Full),
        // Connection, transaction rollback, resources, operator intervention, system; a server
        // that is read-only for now (25006), a lock that was not to be had (55P03).
        "08" | "40" | "53" | "57" | "58" => Some(Trouble::Passing),
        _ if code == "25006" || code == "55P03" => Some(Trouble::Passing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_told_from_what_is_wrong() {
        for (code, found) in [
            (13, Some(Trouble::Full)),
            (5, Some(Trouble::Passing)),           // busy
            (517, Some(Trouble::Passing)),         // busy, a snapshot
            (10 | 3 << 8, Some(Trouble::Passing)), // input or output, writing
            (1, None),                             // a wrong statement
            (19 | 8 << 8, None),                   // a key that is there already
        ] {
            assert_eq!(sqlite_trouble(code), found, "{code}");
        }
        for (code, found) in [
            ("53100", Some(Trouble::Full)),
            ("53300", Some(Trouble::Passing)), // too many connections
            ("57P01", Some(Trouble::Passing)), // shutting down
            ("25006", Some(Trouble::Passing)), // a standby
            ("25001", None),
            ("23505", None), // a key that is there already
            ("42P01", None), // no such table
            ("", None),
        ] {
            assert_eq!(postgres_trouble(code), found, "{code}");
        }
    }
}
