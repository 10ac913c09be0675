//! What of an imported profile is impossible, missing or assumed.

use fusion_cost_model::imported::ImportedRecord;

use super::graphs::{Fusion, Profile};

/// Shares that differ by less say the same.
const SAME: f64 = 0.005;

/// What is to be said of the whole profile.
pub(super) fn of_machine(profile: &Profile) -> Vec<String> {
    let metadata = &profile.metadata;
    let mut notes = vec![
        format!(
            "threads: not recorded; the machine has {} processors, and one program measured each \
             pattern once, unfused first and without a control",
            metadata.cpu_count
        ),
        "dtype: not recorded; f32 is assumed, and the bytes agree".to_owned(),
    ];
    if metadata.cpu_model.as_deref().is_none_or(|model| !model.contains(' ')) {
        let model = metadata.cpu_model.as_deref().unwrap_or("missing");
        let name = &metadata.hardware_name;
        notes.push(format!("cpu_model: {model} names no processor; the machine is called {name}"));
    }
    for (what, reached, stated, stored, unit) in [
        (
            "best_efficiency",
            profile.best_measured_gflops,
            profile.theoretical_peak_gflops,
            profile.best_efficiency,
            "GFLOP/s",
        ),
        (
            "bandwidth_efficiency",
            profile.measured_bandwidth_gbps,
            profile.theoretical_bandwidth_gbps,
            profile.bandwidth_efficiency,
            "GB/s",
        ),
    ] {
        let share = reached / stated;
        if stored.is_some_and(|stored| (stored - share).abs() > SAME) {
            let stored = stored.unwrap_or_default();
            notes.push(format!(
                "{what}: {share:.3}, which is {reached:.1} of {stated:.1} {unit}; the stored \
                 {stored:.3} is that of another peak"
            ));
        }
        if share > 1.0 {
            notes.push(format!(
                "{what}: {reached:.1} {unit} are more than the {stated:.1} that the machine is said \
                 to have"
            ));
        }
    }
    notes.extend(clocks(profile));
    if metadata.preflight.as_ref().is_some_and(|preflight| preflight.forced) {
        notes.push("preflight: it was measured in spite of a failed check".to_owned());
    }
    notes
}

/// A clock far below the highest was read while the machine was idle.
fn clocks(profile: &Profile) -> impl Iterator<Item = String> {
    let metadata = &profile.metadata;
    let of_cpu = metadata.cpu_clock.as_ref();
    let of_gpu = metadata.gpu_clock.as_ref();
    [
        ("cpu_clock", of_cpu.and_then(|one| one.current_freq_mhz.zip(one.max_freq_mhz))),
        ("gpu_clock", of_gpu.and_then(|one| one.sm_clock_mhz.zip(one.max_sm_clock_mhz))),
    ]
    .into_iter()
    .filter_map(|(key, clocks)| {
        let (read, highest) = clocks.filter(|(read, highest)| *read < 0.5 * highest)?;
        Some(format!(
            "{key}: {read:.0} MHz of {highest:.0} was read while nothing ran; what the kernels ran at \
             is not recorded"
        ))
    })
}

/// What the file says of a record that its times and its problem do not.
pub(super) fn of_record(name: &str, fusion: &Fusion, record: &ImportedRecord) -> Vec<String> {
    let mut notes = Vec::new();
    let speedup = record.speedup_factor;
    if (fusion.speedup_factor / speedup - 1.0).abs() > SAME {
        let stored = fusion.speedup_factor;
        notes.push(format!("{name}: its times give {speedup:.3}; the stored speedup is {stored}"));
    }
    let bytes = [fusion.unfused_memory_bytes, fusion.fused_memory_bytes];
    let modelled = [record.unfused_memory_bytes, record.fused_memory_bytes];
    if bytes != modelled {
        let [[unfused, fused], [our_unfused, our_fused]] = [bytes, modelled];
        notes.push(format!(
            "{name}: bytes are counted as here, {our_unfused} unfused and {our_fused} fused; the \
             file has {unfused} and {fused}"
        ));
    }
    let ops = record.problem.chain().len();
    if fusion.operators.len() != ops {
        let operators = fusion.operators.join(", ");
        notes.push(format!("{name}: the ops are those of the pattern, not the stored {operators}"));
    }
    notes
}
