//! What of an imported profile is impossible, missing or assumed.

use fusion_cost_model::imported::ImportedRecord;

use super::graphs::{Fusion, Profile};

/// Keys of every record: the first one is empty, and the second is the number that was asked for,
/// whatever was made.
const SAYS_NOTHING: [&str; 2] = ["extra_params", "num_trials"];

/// Shares that differ by less say the same.
const SAME: f64 = 0.005;

/// What is to be said of the whole profile.
pub(super) fn of_machine(profile: &Profile) -> Vec<String> {
    let metadata = &profile.metadata;
    let processors = match metadata.cpu_count {
        0 => "how many processors the machine has is missing".to_owned(),
        count => format!("the machine has {count} processors"),
    };
    let mut notes = vec![
        format!(
            "threads: not recorded; {processors}, and one program measured each pattern once, unfused \
             first and without a control"
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
        if reached == 0.0 || stated == 0.0 {
            let which = if reached == 0.0 { "measured" } else { "stated" };
            notes.push(format!("{what}: there is no {which} rate in {unit}, and so no share"));
        } else if stored.is_some_and(|stored| (stored - share).abs() > SAME) {
            let stored = stored.unwrap_or_default();
            notes.push(format!(
                "{what}: {share:.3}, which is {reached:.1} of {stated:.1} {unit}; the stored \
                 {stored:.3} is that of another peak"
            ));
        }
        if stated > 0.0 && share > 1.0 {
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
    if !profile.others.is_empty() {
        let keys: Vec<&str> = profile.others.keys().map(String::as_str).collect();
        notes.push(format!("not taken over: {}", keys.join(", ")));
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
    let words: Vec<&str> = fusion.fusion_pattern.split('_').collect();
    let ops = record.problem.chain().len();
    if fusion.operators != words || fusion.operators.len() != ops {
        let operators = fusion.operators.join(", ");
        notes.push(format!("{name}: the ops are those of the pattern, not the stored {operators}"));
    }
    let stored = fusion.operators.len() as u64;
    if let Some(number) = fusion.num_operators.filter(|number| *number != stored) {
        notes.push(format!("{name}: num_operators is {number}, and there are {stored} operators"));
    }
    notes.extend(derived(name, fusion));
    let keys: Vec<&str> = fusion.others.keys().map(String::as_str).collect();
    let keys: Vec<&str> = keys.into_iter().filter(|key| !SAYS_NOTHING.contains(key)).collect();
    if !keys.is_empty() {
        notes.push(format!("{name}: not taken over: {}", keys.join(", ")));
    }
    notes
}

/// Stored figures that are missing, or do not follow from what is stored beside them.
fn derived(name: &str, fusion: &Fusion) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = 1.0 - fusion.fused_memory_bytes as f64 / fusion.unfused_memory_bytes as f64;
    let rate = fusion.flops() / (fusion.fused_latency_ms * 1e6);
    let figures = [
        ("memory_reduction", fusion.memory_reduction, share, 1.0),
        ("fused_gflops", fusion.fused_gflops, rate, rate),
        ("gflops_improvement", fusion.gflops_improvement, rate / fusion.unfused_gflops - 1.0, 1.0),
    ];
    let note = |(key, stored, expected, scale): (&str, Option<f64>, f64, f64)| match stored {
        None => Some(format!("{name}: {key} is missing")),
        Some(stored) => {
            let is_same = (stored - expected).abs() <= SAME * scale;
            (!is_same).then(|| {
                format!("{name}: {key} is {stored}, but {expected:.4} follows from the rest of it")
            })
        }
    };
    figures.into_iter().filter_map(note).collect()
}
