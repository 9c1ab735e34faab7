//! Time in the store's format: milliseconds since 1970.

use time::OffsetDateTime;

/// Milliseconds since 1970.
pub type Millis = i64;

/// Returns the current time.
pub fn now() -> Millis {
    let nanoseconds = OffsetDateTime::now_utc().unix_timestamp_nanos();
    Millis::try_from(nanoseconds / 1_000_000).unwrap_or(Millis::MAX)
}

/// Converts a stored time for the wire. A time that cannot be represented becomes 1970.
pub fn date(millis: Millis) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// Converts seconds to milliseconds.
pub fn seconds(seconds: u64) -> Millis {
    Millis::try_from(seconds.saturating_mul(1000)).unwrap_or(Millis::MAX)
}
