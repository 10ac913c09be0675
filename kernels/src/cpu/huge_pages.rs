//! How much of a range of memory lies in huge pages, as Linux reports it.

use std::ops::Range;

/// The share of a range of addresses in huge pages, from 0 to 1; `None` where the system does not
/// report it.
pub(crate) fn share(range: Range<u64>) -> Option<f64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    // The names of mapped files need not be UTF-8.
    let smaps = std::fs::read("/proc/self/smaps").ok()?;
    share_in(&String::from_utf8_lossy(&smaps), range)
}

/// A mapping of the process.
struct Mapping {
    range: Range<u64>,
    /// Bytes of it in huge pages.
    huge: Option<u64>,
}

/// The same from the text of `smaps`. `None` as well when a mapping of the range lacks the number.
///
/// The system joins neighbouring mappings of the same kind, so a mapping may be larger than the
/// range. Then its huge pages count for the range in proportion.
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn share_in(smaps: &str, range: Range<u64>) -> Option<f64> {
    let mut huge = 0.0;
    let mut found = false;
    for mapping in mappings(smaps) {
        let overlap =
            mapping.range.end.min(range.end).saturating_sub(mapping.range.start.max(range.start));
        if overlap == 0 {
            continue;
        }
        found = true;
        let whole = (mapping.range.end - mapping.range.start) as f64;
        huge += mapping.huge? as f64 * (overlap as f64 / whole);
    }
    found.then(|| (huge / (range.end - range.start) as f64).min(1.0))
}

/// The mappings of the text in order. Lines that are neither the head of a mapping nor its number
/// of huge pages are skipped.
fn mappings(smaps: &str) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in smaps.lines() {
        if let Some(range) = head(line) {
            mappings.push(Mapping { range, huge: None });
        } else if let (Some(huge), Some(last)) = (anon_huge_pages(line), mappings.last_mut()) {
            last.huge = Some(huge);
        }
    }
    mappings
}

/// The addresses of a line such as `7f2c00000000-7f2c00400000 rw-p 00000000 00:00 0`.
fn head(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let range = address(start)?..address(end)?;
    (range.start < range.end).then_some(range)
}

/// The bytes of a line such as `AnonHugePages:      2048 kB`.
fn anon_huge_pages(line: &str) -> Option<u64> {
    let kibibytes = line.strip_prefix("AnonHugePages:")?.trim().strip_suffix("kB")?;
    kibibytes.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A mapping of the text, with the fields around the one that counts.
    fn mapping(range: Range<u64>, huge_kb: &str) -> String {
        format!(
            "{:x}-{:x} rw-p 00000000 00:00 0 \nSize: 4 kB\nAnonHugePages:  {huge_kb}\n\
             ShmemPmdMapped:        0 kB\nVmFlags: rd wr mr mw me ac sd hg \n",
            range.start, range.end
        )
    }

    #[test]
    fn the_mapping_of_the_range_counts_and_no_other() {
        let smaps = mapping(0..64 * MIB, "65536 kB")
            + &mapping(100 * MIB..110 * MIB, "6144 kB")
            + &mapping(110 * MIB..120 * MIB, "10240 kB");
        assert_eq!(share_in(&smaps, 100 * MIB..110 * MIB), Some(0.6));
        assert_eq!(share_in(&smaps, 0..64 * MIB), Some(1.0));
        assert_eq!(share_in(&smaps, 64 * MIB..100 * MIB), None);
    }

    #[test]
    fn a_range_in_two_mappings_is_the_sum_of_both() {
        let smaps =
            mapping(100 * MIB..104 * MIB, "4096 kB") + &mapping(104 * MIB..110 * MIB, "0 kB");
        assert_eq!(share_in(&smaps, 100 * MIB..110 * MIB), Some(0.4));
        // Half of the first, and the part of the second that a hole does not take.
        assert_eq!(share_in(&smaps, 102 * MIB..112 * MIB), Some(0.2));
    }

    #[test]
    fn a_larger_mapping_counts_in_proportion() {
        let smaps = mapping(100 * MIB..140 * MIB, "20480 kB");
        assert_eq!(share_in(&smaps, 110 * MIB..120 * MIB), Some(0.5));
        // More than all would be a mistake of the system.
        let smaps = mapping(100 * MIB..110 * MIB, "999999 kB");
        assert_eq!(share_in(&smaps, 100 * MIB..110 * MIB), Some(1.0));
    }

    #[test]
    fn what_the_system_does_not_tell_is_none() {
        let without = "6400000-6e00000 rw-p 00000000 00:00 0\nSize: 10240 kB\n";
        assert_eq!(share_in(without, 100 * MIB..110 * MIB), None);
        for number in ["", "kB", "-3 kB", "2048", "18446744073709551615 kB"] {
            let smaps = mapping(100 * MIB..110 * MIB, number);
            assert_eq!(share_in(&smaps, 100 * MIB..110 * MIB), None, "{number:?}");
        }
    }

    #[test]
    fn garbage_is_skipped() {
        let garbage = "\n\n-\nx-y rw-p\nAnonHugePages: 4 kB\n20-10 rw-p\n: - :\n\u{fffd}\n";
        assert_eq!(share_in(garbage, 0..10 * MIB), None);
        let smaps = garbage.to_owned() + &mapping(100 * MIB..110 * MIB, "5120 kB") + garbage;
        // The stray number at the end belongs to the mapping before it.
        assert_eq!(share_in(&smaps, 100 * MIB..110 * MIB), Some(4096.0 / (10 * MIB) as f64));
        assert_eq!(share_in("", 0..1), None);
    }
}
