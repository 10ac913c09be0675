//! Numbers as readable text.

/// A time given in milliseconds, in the unit that suits it.
#[must_use]
pub fn milliseconds(ms: f64) -> String {
    let (value, unit) = if ms < 1e-3 {
        (ms * 1e6, "ns")
    } else if ms < 1.0 {
        (ms * 1e3, "us")
    } else if ms < 1e3 {
        (ms, "ms")
    } else {
        (ms / 1e3, "s")
    };
    format!("{} {unit}", three_digits(value))
}

/// A ratio with its interval.
#[must_use]
pub fn ratio(value: f64, low: f64, high: f64) -> String {
    format!("{value:.3} [{low:.3}, {high:.3}]")
}

/// A share in per cent.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A number with its noun.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Bytes of memory.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// Bytes of memory that a kernel needs.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", three_digits(bytes as f64 / f64::from(1 << 20)))
}

/// A number with three significant digits, if it has fewer before the point.
#[must_use]
pub fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_unit() {
        assert_eq!(milliseconds(0.000_52), "520 ns");
        assert_eq!(milliseconds(0.012_34), "12.3 us");
        assert_eq!(milliseconds(1.456), "1.46 ms");
        assert_eq!(milliseconds(9.999), "10.0 ms");
        assert_eq!(milliseconds(2500.0), "2.50 s");
        assert_eq!(ratio(1.0834, 1.0756, 1.0912), "1.083 [1.076, 1.091]");
        assert_eq!(percent(0.571), "57 %");
        assert_eq!([0, 1, 2].map(|count| counted(count, "run")), ["0 runs", "1 run", "2 runs"]);
    }
}
