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
    /// The most that a file may have.
    const MOST: Duration = Duration::from_secs(1_000_000_000);
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write it as 90s, 10m or 1h30m"))?;
    if duration > MOST {
        return Err("it must be at most 1000000000s, some 31 years".to_owned());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_that_a_file_can_have() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration_or_none("0s"), Ok(Duration::ZERO));
        assert!(duration_or_none("30years").is_ok());
        for refused in ["0s", "1000years", "10", "-3s", ""] {
            assert!(duration(refused).is_err(), "{refused}");
        }
    }
}
