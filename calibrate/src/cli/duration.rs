//! Times on the command line.

use std::time::Duration;

/// Reads `10m` or `1h30m`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match duration_or_none(text)? {
        Duration::ZERO => Err("it must be longer than nothing".to_owned()),
        duration => Ok(duration),
    }
}

/// The same, or `0s`.
pub(super) fn duration_or_none(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write it as 90s, 10m or 1h30m"))
}
