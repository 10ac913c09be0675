//! The clock of a device, as the kernel's driver shows it in a file.

use std::fs;
use std::path::{Path, PathBuf};

/// The file of a device that lists the clocks of its compute units.
pub(super) fn file(root: &Path, bus_id: &str) -> PathBuf {
    root.join("sys/bus/pci/devices").join(bus_id).join("pp_dpm_sclk")
}

/// The clock now; `None` where the file cannot be read.
pub(super) fn read(file: &Path) -> Option<u32> {
    current(&fs::read_to_string(file).ok()?)
}

/// The clock in the line with the star, such as `1: 2100Mhz *`.
fn current(text: &str) -> Option<u32> {
    let line = text.lines().find(|line| line.trim_end().ends_with('*'))?;
    let (_, clock) = line.split_once(':')?;
    let clock = clock.trim_end().trim_end_matches('*').trim().to_ascii_lowercase();
    clock.strip_suffix("mhz")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_the_star_counts() {
        assert_eq!(current("0: 500Mhz\n1: 1330Mhz *\n2: 2100Mhz\n"), Some(1330));
        assert_eq!(current("S: 19Mhz *\n0: 615Mhz\n1: 800Mhz\n"), Some(19));
        assert_eq!(current("0: 132MHz * "), Some(132));
    }

    #[test]
    fn anything_else_is_no_clock() {
        for text in ["", "*", "0: 500Mhz\n1: 600Mhz", "1: fast *", "1: Mhz *", "600 *"] {
            assert_eq!(current(text), None, "{text:?}");
        }
        assert_eq!(read(Path::new("/nowhere/pp_dpm_sclk")), None);
    }
}
