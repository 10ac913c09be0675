//! What may be changed alone, and why.

use super::edit::Change::{
    self, Blank, Doubled, Emptied, Flipped, Halved, Huge, Large, Lengthened, Negative, Other,
    Removed, Reversed, Shortened, Text, Tiny, Zero,
};

/// Keys for which nothing in the file speaks against some changes, and why that is so.
pub(crate) struct Free {
    pub(crate) why: &'static str,
    pub(crate) keys: &'static [(&'static [Change], &'static [&'static str])],
}

pub(crate) const FREE: &[Free] = &[
    Free {
        why: "words for people: nothing is computed from them",
        keys: &[
            (
                &[Blank, Text, Other],
                &[
                    "addition.shapes",
                    "check.advice",
                    "fusion.fused_kernel",
                    "hardware.memory.kind",
                    "hardware.peak.how",
                    "runtime.device",
                    "settings.shapes",
                ],
            ),
            (
                &[Text, Other],
                &[
                    "ceilings.failed_core.reason",
                    "check.found",
                    "fusion.gpu.failed_core.reason",
                    "fusion.gpu.fused_kernel.name",
                    "fusion.gpu.unfused_kernel.name",
                    "fusion.reason.text",
                    "skipped.reason",
                ],
            ),
            (&[Blank, Text, Other, Lengthened], &["fusion.gpu.throttle_reasons"]),
            (
                &[Blank, Text, Other, Emptied, Shortened, Lengthened, Reversed],
                &["fusion.unfused_kernels"],
            ),
            (
                &[Removed, Blank, Text, Other],
                &["hardware.cache.note", "hardware.cores.note", "runtime.options.threads"],
            ),
            (&[Removed], &["runtime.options"]),
        ],
    },
    Free {
        why: "a name or a version: the file says it once",
        keys: &[
            (&[Text, Other], &["check.name", "tool.name", "tool.version"]),
            (&[Other], &["hardware.id"]),
            (&[Blank, Text, Other], &["tool.compiler", "tool.compiler_flags"]),
            (&[Blank, Text, Other, Emptied, Shortened, Lengthened, Reversed], &["tool.crates"]),
        ],
    },
    Free {
        why: "observed, and said once: of the machine, or of a GPU whose data sheet is another source",
        keys: &[
            (&[Removed, Emptied, Shortened, Lengthened, Reversed], &["fingerprint.cache"]),
            (&[Doubled, Halved, Large], &["fingerprint.cache.bytes"]),
            (&[Doubled], &["fingerprint.memory_bytes"]),
            (&[Doubled, Halved], &["fingerprint.cache.level", "fingerprint.cache.shared_by"]),
            (
                &[Removed, Blank, Text, Other],
                &[
                    "fingerprint.cpu_family_model_stepping",
                    "fingerprint.kernel",
                    "fingerprint.microcode",
                ],
            ),
            (
                &[Text, Other],
                &["fingerprint.cpu_model", "fingerprint.cpu_vendor", "fingerprint.os"],
            ),
            (&[Blank, Text, Other, Emptied, Shortened, Reversed], &["fingerprint.features"]),
        ],
    },
    Free {
        why: "what a driver or a compiler reports, and only it",
        keys: &[
            (&[Text, Other], &["fingerprint.gpu.architecture"]),
            (
                &[Blank, Text, Other],
                &[
                    "fingerprint.gpu.bus_id",
                    "fingerprint.gpu.compiler",
                    "fingerprint.gpu.driver",
                    "fingerprint.gpu.runtime",
                ],
            ),
            (
                &[Zero, Doubled, Halved],
                &[
                    "fingerprint.gpu.clock_mhz",
                    "fusion.gpu.fused_kernel.registers",
                    "fusion.gpu.fused_kernel.resident_blocks",
                    "fusion.gpu.fused_kernel.shared_bytes",
                    "fusion.gpu.unfused_kernel.registers",
                    "fusion.gpu.unfused_kernel.resident_blocks",
                    "fusion.gpu.unfused_kernel.shared_bytes",
                ],
            ),
            (&[Zero, Doubled, Halved, Large], &["fingerprint.gpu.l2_bytes"]),
            (
                &[Removed, Blank, Text, Other, Emptied, Shortened, Lengthened],
                &["fingerprint.gpu.libraries"],
            ),
            (
                &[Doubled, Halved, Large],
                &[
                    "fingerprint.gpu.memory_bytes",
                    "fusion.gpu.fused_kernel.blocks",
                    "fusion.gpu.unfused_kernel.blocks",
                ],
            ),
            (
                &[Doubled, Halved],
                &[
                    "fingerprint.gpu.processors",
                    "fusion.gpu.fused_kernel.threads",
                    "fusion.gpu.unfused_kernel.threads",
                ],
            ),
            (&[Zero, Doubled, Halved, Reversed], &["fusion.gpu.clock_changes"]),
            (
                &[Other],
                &[
                    "ceilings.core",
                    "ceilings.failed_core.failure",
                    "fusion.gpu.core",
                    "fusion.gpu.failed_core.failure",
                ],
            ),
            (&[Removed, Zero, Doubled, Halved], &["fusion.gpu.device_clock_mhz"]),
            (&[Removed, Emptied, Shortened], &["ceilings.failed_core"]),
            (&[Removed, Emptied, Shortened, Lengthened], &["fusion.gpu.fused_kernel"]),
            (&[Doubled], &["fusion.gpu.highest_clock_mhz"]),
            (&[Zero, Halved], &["fusion.gpu.lowest_clock_mhz"]),
            (&[Removed, Emptied, Shortened, Lengthened, Reversed], &["fusion.gpu.unfused_kernel"]),
        ],
    },
    Free {
        why: "a figure of a data sheet, which a calibration only repeats",
        keys: &[
            (
                &[Removed, Blank, Text, Other, Emptied, Shortened, Lengthened],
                &["hardware.aliases", "hardware.detect_except", "hardware.detect_if_named"],
            ),
            (
                &[Blank, Text, Other],
                &[
                    "hardware.architecture",
                    "hardware.cache.source",
                    "hardware.cores.source",
                    "hardware.memory.source",
                    "hardware.name",
                    "hardware.peak.source",
                    "hardware.vendor",
                ],
            ),
            (&[Removed, Emptied, Shortened, Lengthened, Reversed], &["hardware.cache"]),
            (&[Doubled, Halved, Large], &["hardware.cache.bytes"]),
            (
                &[Doubled, Halved],
                &[
                    "hardware.cache.instances",
                    "hardware.cache.level",
                    "hardware.cores.count",
                    "hardware.peak.gflops",
                ],
            ),
            (&[Other], &["hardware.cache.kind", "hardware.peak.dtype", "hardware.peak.unit"]),
            (&[Removed, Halved], &["hardware.cores.base_clock_mhz"]),
            (&[Removed, Doubled], &["hardware.cores.boost_clock_mhz"]),
            (&[Lengthened], &["hardware.detect"]),
            (&[Zero, Doubled, Halved], &["hardware.memory.bandwidth_gb_per_s"]),
            (&[Removed, Doubled, Halved], &["hardware.memory.capacity_gib"]),
            (&[Removed, Emptied, Shortened, Lengthened], &["hardware.peak"]),
        ],
    },
    Free {
        why: "when something happened: clocks can be set, and runs are merged",
        keys: &[(&[Other], &["addition.started_at", "earlier_state.seen_at", "tool.started_at"])],
    },
    Free {
        why: "what was asked for; what came of it may be less",
        keys: &[
            (&[Flipped], &["addition.forced", "addition.quick", "settings.quick"]),
            (&[Zero, Doubled, Halved, Large, Huge], &["addition.seed", "settings.seed"]),
            (&[Other], &["settings.end", "settings.requested_hardware"]),
            (
                &[Doubled, Halved],
                &["settings.most_processes", "settings.processes", "settings.rounds"],
            ),
            (&[Zero, Doubled, Halved, Tiny], &["settings.spread_s"]),
            (&[Removed, Zero, Doubled, Halved, Tiny], &["settings.time_budget_s"]),
        ],
    },
    Free {
        why: "how many there are is said nowhere: a run may have fewer or more of them",
        keys: &[
            (&[Lengthened], &["addition"]),
            (&[Removed, Emptied, Shortened, Lengthened], &["earlier_state", "skipped"]),
            (&[Zero, Doubled, Halved], &["addition.records"]),
            (&[Removed, Emptied, Shortened, Reversed], &["check"]),
            (&[Reversed], &["fusion"]),
            (&[Removed, Emptied, Shortened, Lengthened, Reversed], &["fusion.reason"]),
            (&[Shortened, Lengthened, Reversed], &["noise"]),
        ],
    },
    Free {
        why: "measured by itself: nothing else in the file follows from it alone",
        keys: &[
            (&[Shortened], &["ceilings.bandwidth"]),
            (
                &[Doubled, Halved],
                &[
                    "ceilings.bandwidth.gb_per_s",
                    "earlier_state.triad_gb_per_s",
                    "fusion.fused_timing.inner_iterations",
                    "fusion.unfused_timing.inner_iterations",
                ],
            ),
            (
                &[Removed, Doubled, Halved],
                &[
                    "ceilings.bandwidth.nontemporal_gb_per_s",
                    "ceilings.bandwidth.read_gb_per_s",
                    "earlier_state.handoff_us",
                    "state.handoff_us",
                ],
            ),
            (
                &[Doubled, Halved, Large],
                &[
                    "ceilings.bandwidth.working_set_bytes",
                    "earlier_state.threads",
                    "fusion.sample_ticks",
                    "state.processes",
                ],
            ),
            (
                &[Zero, Doubled, Halved, Large],
                &["fusion.fused_scratch_bytes", "fusion.unfused_scratch_bytes"],
            ),
            (&[Removed, Zero, Negative, Doubled, Halved, Tiny], &["fusion.order_sensitivity"]),
            (&[Removed, Zero, Halved, Tiny], &["fusion.placement.huge_page_share"]),
            (&[Flipped], &["fusion.placement.pinned"]),
            (&[Doubled, Large, Emptied, Shortened], &["fusion.placement.processors"]),
            (&[Removed], &["fusion.process_correlation"]),
            (&[Removed, Doubled, Halved], &["fusion.span_s"]),
            (
                &[Zero, Doubled, Halved, Tiny],
                &["fusion.verification.fused_error", "fusion.verification.unfused_error"],
            ),
            (&[Halved], &["fusion.verification.reference_rows"]),
            (&[Halved, Tiny], &["fusion.verification.tolerance"]),
        ],
    },
    Free {
        why: "how far measurements lie apart, which nothing else shows",
        keys: &[
            (&[Removed], &["ceilings.spread"]),
            (
                &[Doubled],
                &[
                    "ceilings.spread.highest_launch_us",
                    "ceilings.spread.measurements",
                    "fusion.fused_timing.q3_ms",
                    "fusion.unfused_timing.q3_ms",
                    "noise.ratio_high",
                ],
            ),
            (
                &[Halved],
                &[
                    "ceilings.spread.lowest_memory_gb_per_s",
                    "ceilings.spread.lowest_peak_gflops",
                    "fusion.fused_timing.q1_ms",
                    "fusion.step.low_ms",
                    "fusion.unfused_timing.q1_ms",
                    "noise.ratio_low",
                ],
            ),
            (&[Doubled, Halved], &["fusion.step.high_ms", "state.triad_range"]),
            (&[Halved], &["noise.standard_error"]),
        ],
    },
    Free {
        why: "how many were made is bounded by the settings, and said only here",
        keys: &[
            (&[Doubled], &["fusion.disturbed.clock_change"]),
            (&[Zero, Halved], &["fusion.disturbed.involuntary_switch"]),
            (
                &[Zero, Doubled, Halved],
                &["fusion.disturbed.off_processor", "fusion.disturbed.run_delay"],
            ),
            (&[Doubled, Halved], &["fusion.processes", "fusion.rounds"]),
            (&[Doubled, Halved, Large], &["noise.processes"]),
        ],
    },
    Free {
        why: "states are known to the file, but not in which of them each process was",
        keys: &[
            (&[Removed, Doubled], &["ceilings.state"]),
            (&[Doubled], &["fusion.fused_timing.high_ms", "fusion.unfused_timing.high_ms"]),
            (&[Halved], &["fusion.fused_timing.low_ms", "fusion.unfused_timing.low_ms"]),
            (
                &[Doubled, Halved, Reversed],
                &["fusion.fused_timing.process_ms", "fusion.unfused_timing.process_ms"],
            ),
            (&[Removed, Doubled, Emptied, Shortened], &["fusion.states"]),
        ],
    },
    Free {
        why: "the record would be of another kind, which the file could have",
        keys: &[
            (&[Other], &["check.status", "noise.problem", "skipped.problem"]),
            (&[Removed], &["fusion.rewrite"]),
            (&[Removed, Flipped], &["noise.disturbed"]),
            (&[Removed, Other], &["skipped.failure"]),
            (&[Doubled, Halved, Large], &["noise.threads"]),
        ],
    },
    Free {
        why: "next to nothing beside the number that it is a difference of",
        keys: &[(&[Tiny], &["fusion.efficiency_improvement", "fusion.memory_reduction"])],
    },
];
