//! Devices that plans are made for here: what is known of real ones of an architecture.

use crate::gpu::{Architecture, DeviceFacts};

/// A device of an architecture, such as `sm_80`, `sm_90a`, `gfx942`.
pub(crate) fn device(name: &str) -> DeviceFacts {
    let architecture = match name.strip_prefix("sm_") {
        Some(number) => {
            let number: u32 = number.trim_end_matches('a').parse().unwrap();
            Architecture::of_compute_capability(number / 10, number % 10)
        }
        None => Architecture::of_gfx(name),
    };
    let architecture = architecture.unwrap_or_else(|| panic!("there are no kernels for {name}"));
    // Processors, the most shared memory of a block in KiB, the L2 in MiB and what lies behind it.
    let (processors, shared, l2, last_level) = match name {
        "sm_75" => (40, 64, 4, 4),      // T4
        "sm_80" => (108, 163, 40, 40),  // A100
        "sm_90a" => (132, 227, 50, 50), // H100
        "gfx90a" => (104, 64, 8, 8),    // MI210
        "gfx942" => (304, 64, 4, 256),  // MI300X
        "gfx1100" => (96, 64, 6, 96),   // RX 7900 XTX
        "gfx1201" => (64, 64, 8, 64),   // RX 9070 XT
        _ => (32, 64, 4, 4),
    };
    DeviceFacts {
        name: format!("emulated {name}"),
        architecture,
        processors,
        shared_bytes_per_block: shared << 10,
        l2_bytes: l2 << 20,
        last_level_bytes: last_level << 20,
        memory_bytes: 16 << 30,
        clock_mhz: 1000,
        counters: None,
        bus_id: String::from("0000:00:00.0"),
        driver_version: String::from("none"),
        runtime_version: String::from("none"),
    }
}
