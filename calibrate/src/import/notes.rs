//! What of an imported profile is impossible, missing or assumed.

use std::collections::BTreeMap;

use fusion_cost_model::cost::Traffic;
use fusion_cost_model::imported::ImportedRecord;
use serde_json::Value;

use super::graphs::{Fusion, Metadata, Profile};

/// A key of every record, which is named once: the number that was asked for, whatever was made.
const NUM_TRIALS: &str = "num_trials";

/// What else is to be said of a record, mostly empty.
const EXTRA_PARAMS: &str = "extra_params";

/// Shares that differ by less say the same.
const SAME: f64 = 0.005;

/// What is to be said of the whole profile.
pub(super) fn of_machine(profile: &Profile) -> Vec<String> {
    let metadata = &profile.metadata;
    let processors = match metadata.processors() {
        None => "how many processors the machine has is missing".to_owned(),
        Some(count) => format!("the machine has {count} processors"),
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
    let keys = unread_of_profile(profile);
    if !keys.is_empty() {
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
pub(super) fn of_record(
    name: &str,
    fusion: &Fusion,
    record: &ImportedRecord,
    profile: &Profile,
) -> Vec<String> {
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
    notes.extend(of_rates(name, fusion, record, profile.theoretical_peak_gflops));
    notes.extend(of_shares(name, fusion));
    let keys = unread_of_record(fusion);
    if !keys.is_empty() {
        notes.push(format!("{name}: not taken over: {}", keys.join(", ")));
    }
    notes
}

/// Whether two positive numbers say the same.
fn is_near(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() <= SAME
}

/// Stored rates that are missing, or that the problem cannot have in its time. Which flops a tool
/// counts differs a little, so a rate is blamed alone only if the other one contradicts it.
fn of_rates(name: &str, fusion: &Fusion, record: &ImportedRecord, peak: f64) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "a count of flops")]
    let ours = Traffic::of(&record.problem).flops as f64;
    let unfused = (
        "unfused_gflops",
        Some(fusion.unfused_gflops),
        Some(fusion.flops()),
        fusion.unfused_latency_ms,
    );
    let fused =
        ("fused_gflops", fusion.fused_gflops, fusion.fused_flops(), fusion.fused_latency_ms);
    let counts = [unfused, fused].into_iter().filter_map(|(_, _, flops, _)| flops);
    let counts = counts.filter(|flops| *flops > 0.0 && flops.is_finite());
    let distance = |flops: &f64| (flops / ours).ln().abs();
    let nearest = counts.min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let theirs = nearest.unwrap_or(ours);
    let mut notes = Vec::new();
    if !is_near(theirs, ours) {
        notes.push(format!(
            "{name}: flops are counted as here, {ours:.0}; the rates of the file are of {theirs:.0}"
        ));
    }
    for (key, stored, flops, ms) in [unfused, fused] {
        let (Some(stored), Some(flops)) = (stored, flops) else {
            notes.push(format!("{name}: {key} is missing"));
            continue;
        };
        if !is_near(flops, theirs) {
            let expected = theirs / ms / 1e6;
            notes.push(format!(
                "{name}: {key} is {stored}, but {expected:.4} follows from its flops and its time"
            ));
        } else if peak > 0.0 && stored > peak {
            notes.push(format!(
                "{name}: {key} is {stored}, more than the {peak:.1} GFLOP/s that the machine is said \
                 to have"
            ));
        }
    }
    notes
}

/// Stored shares that are missing, or do not follow from what is stored beside them.
fn of_shares(name: &str, fusion: &Fusion) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let left = fusion.fused_memory_bytes as f64 / fusion.unfused_memory_bytes as f64;
    // Both rates are of the same flops, so that the times alone say how they differ.
    let improvement = fusion.unfused_latency_ms / fusion.fused_latency_ms - 1.0;
    let shares = [
        ("memory_reduction", fusion.memory_reduction, 1.0 - left),
        ("gflops_improvement", fusion.gflops_improvement, improvement),
    ];
    let note = |(key, stored, expected): (&str, Option<f64>, f64)| match stored {
        None => Some(format!("{name}: {key} is missing")),
        Some(stored) if !expected.is_finite() => {
            Some(format!("{name}: {key} is {stored}, but no share follows from the rest of it"))
        }
        Some(stored) => ((stored - expected).abs() > SAME).then(|| {
            format!("{name}: {key} is {stored}, but {expected:.4} follows from the rest of it")
        }),
    };
    shares.into_iter().filter_map(note).collect()
}

/// Keys that nothing here reads, each behind those of the objects that it is in.
fn unread<'a>(within: &str, keys: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    keys.into_iter().map(|key| format!("{within}{key}")).collect()
}

/// Those of the whole profile.
fn unread_of_profile(profile: &Profile) -> Vec<String> {
    let Metadata { cpu_clock, gpu_clock, preflight, others, .. } = &profile.metadata;
    let mut keys = unread("", profile.others.keys());
    keys.extend(unread("metadata.", others.keys()));
    for (within, others) in [
        ("metadata.cpu_clock.", cpu_clock.as_ref().map(|clock| &clock.others)),
        ("metadata.gpu_clock.", gpu_clock.as_ref().map(|clock| &clock.others)),
        ("metadata.preflight.", preflight.as_ref().map(|preflight| &preflight.others)),
    ] {
        keys.extend(unread(within, others.into_iter().flat_map(BTreeMap::keys)));
    }
    if profile.fusion_profiles.values().any(|fusion| fusion.others.contains_key(NUM_TRIALS)) {
        keys.push(format!("{NUM_TRIALS} of all fusion_profiles"));
    }
    keys
}

/// Those of a record.
fn unread_of_record(fusion: &Fusion) -> Vec<String> {
    let mut keys = Vec::new();
    for (key, value) in &fusion.others {
        match (key.as_str(), value) {
            (NUM_TRIALS, _) => {}
            (EXTRA_PARAMS, Value::Object(params)) => {
                keys.extend(unread("extra_params.", params.keys()));
            }
            _ => keys.push(key.clone()),
        }
    }
    keys
}
