//! Times of the day, as files have them.

use std::time::SystemTime;

/// Now, in UTC (RFC 3339), to the second.
#[must_use]
pub fn now() -> String {
    text(SystemTime::now())
}

/// A time. Before 1970, where only a clock is that was never set, it is the beginning of 1970.
fn text(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time.max(SystemTime::UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn clocks_that_were_never_set_have_a_time_too() {
        let day = Duration::from_secs(24 * 60 * 60);
        assert_eq!(text(SystemTime::UNIX_EPOCH + day), "1970-01-02T00:00:00Z");
        assert_eq!(text(SystemTime::UNIX_EPOCH - day), "1970-01-01T00:00:00Z");
    }
}
