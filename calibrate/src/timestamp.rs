//! Times of the day, as files have them.

use std::time::{Duration, SystemTime};

/// Seconds of the last second of the year 9999 after the beginning of 1970: RFC 3339 has four digits.
const LAST: Duration = Duration::from_secs(253_402_300_799);

/// Now, in UTC (RFC 3339), to the second.
#[must_use]
pub fn now() -> String {
    text(SystemTime::now())
}

/// A time. Clocks that were never set, or set to nonsense, are before 1970 or after 9999; then it is the
/// nearest time in between.
fn text(time: SystemTime) -> String {
    let first = SystemTime::UNIX_EPOCH;
    humantime::format_rfc3339_seconds(time.clamp(first, first + LAST)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_were_never_set_have_a_time_too() {
        let day = Duration::from_secs(24 * 60 * 60);
        assert_eq!(text(SystemTime::UNIX_EPOCH + day), "1970-01-02T00:00:00Z");
        assert_eq!(text(SystemTime::UNIX_EPOCH - day), "1970-01-01T00:00:00Z");
        for beyond in [Duration::ZERO, Duration::from_secs(1), 400 * 365 * day] {
            assert_eq!(text(SystemTime::UNIX_EPOCH + LAST + beyond), "9999-12-31T23:59:59Z");
        }
    }
}
