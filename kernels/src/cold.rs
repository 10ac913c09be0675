//! How many sets of tensors keep the caches cold.
//!
//! In the cold state every run uses another set of tensors, so that it finds nothing in the
//! caches. A set comes round again when runs on all others have touched enough to push it out.

use fusion_cost_model::Problem;
use fusion_cost_model::cost::Traffic;

use crate::backend::Unsupported;

/// Between two uses of a set, runs touch this many times the bytes of the last-level cache. Once
/// would do if caches replaced what was used longest ago; they only nearly do.
const CACHES_BETWEEN: u64 = 2;

/// The most sets of one problem.
///
/// What bounds them is the clock, which is read once per run and takes some 30 ns. With a cache of
/// 100 MB, that many sets let problems of 13 kB pass, which take 3.5 us when they are cold: a
/// hundred times as long. Preparing that many takes a tenth of a second, a new layout a third of
/// that.
const MAX_SETS: u64 = 1 << 14;

/// How many sets a problem needs on a machine with `cache_bytes` of last-level cache, at least
/// two: enough that all but one touch [`CACHES_BETWEEN`] caches before that one comes round.
///
/// # Errors
///
/// [`Unsupported::TooSmallForCold`] when they are more than [`MAX_SETS`].
pub(crate) fn sets(problem: &Problem, cache_bytes: u64) -> Result<usize, Unsupported> {
    // The fewer bytes of the two variants: the unfused one touches these and more.
    let bytes = Traffic::of(problem).fused_bytes.max(1);
    let between = cache_bytes.saturating_mul(CACHES_BETWEEN).max(1);
    let sets = between.div_ceil(bytes).saturating_add(1);
    match usize::try_from(sets) {
        Ok(count) if sets <= MAX_SETS => Ok(count),
        _ => {
            Err(Unsupported::TooSmallForCold { bytes, least_bytes: between.div_ceil(MAX_SETS - 1) })
        }
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::CacheState;

    use super::*;
    use crate::backend::{Backend, Prepared, Variant};
    use crate::cpu::Cpu;
    use crate::inputs::Inputs;
    use crate::proof::Expected;

    const PROBLEMS: [&str; 5] = [
        "add_relu/f32/m1.n1",
        "add_relu/f32/m64.n100",
        "layer_norm+sigmoid/f32/m31.n333",
        "linear_bias_relu/f32/m33.k129.n519",
        "conv2d+bias+relu6+max_pool+add+tanh/f32/n1.c3.h6.w6.k5.r3.s3.pad1",
    ];

    fn problem(text: &str) -> Problem {
        text.parse().unwrap()
    }

    #[test]
    fn the_other_sets_fill_the_caches_and_no_set_is_idle() {
        for text in PROBLEMS {
            let problem = problem(text);
            let bytes = Traffic::of(&problem).fused_bytes;
            for cache_bytes in [0, 1, 1000, 32 << 10, 1 << 20, 105 << 20, 1 << 40] {
                match sets(&problem, cache_bytes) {
                    Ok(count) => {
                        let others = count as u64 - 1;
                        assert!(count >= 2, "a problem must not meet its own last run");
                        assert!(others * bytes >= 2 * cache_bytes);
                        assert!(others == 1 || (others - 1) * bytes < 2 * cache_bytes);
                        assert!(count as u64 <= MAX_SETS);
                    }
                    Err(Unsupported::TooSmallForCold { bytes: touched, least_bytes }) => {
                        assert_eq!(touched, bytes);
                        assert!(bytes < least_bytes);
                        assert!((MAX_SETS - 1) * bytes < 2 * cache_bytes);
                        assert!(2 * cache_bytes <= least_bytes * (MAX_SETS - 1));
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            assert!(sets(&problem, u64::MAX).is_err());
        }
    }

    #[test]
    fn every_set_is_used_in_turn_across_calls_and_variants() {
        let problem = problem("add_relu/f32/m4.n4");
        let inputs = Inputs::random(&problem, 1);
        let cpu = Cpu::new(1).unwrap().with_last_level_cache(500);
        let mut prepared =
            cpu.prepare_sets(&problem, &inputs, CacheState::Cold.into()).unwrap().unwrap();
        // Three tensors of 64 bytes: six sets touch 1152 bytes, and one more comes round.
        let count = prepared.tensors.len();
        assert_eq!(count, 7);
        prepared.poison().unwrap();
        let mut used = 0;
        for (call, iterations) in [1, 2, 0, 3, 8, 1].into_iter().enumerate() {
            let before: Vec<bool> = (0..count).map(|set| prepared.is_written(set)).collect();
            prepared.run(Variant::ALL[call % 2], iterations).unwrap();
            used += iterations as usize;
            for (set, before) in before.into_iter().enumerate() {
                let touched = (used - iterations as usize..used).any(|run| run % count == set);
                assert_eq!(prepared.is_written(set), before || touched, "set {set}, call {call}");
            }
            assert_eq!(prepared.current, (used + count - 1) % count);
        }
        // A new layout begins with the set that was written first, which has cooled longest.
        prepared.new_layout(3).unwrap();
        prepared.run(Variant::Fused, 1).unwrap();
        assert_eq!(prepared.current, 0);
    }

    #[test]
    fn poison_and_inputs_reach_every_set_and_every_output_is_right() {
        for text in PROBLEMS {
            let problem = problem(text);
            let inputs = Inputs::random(&problem, 7);
            let expected = Expected::compute(&problem, &inputs, u64::MAX);
            let cache_bytes = 3 * Traffic::of(&problem).fused_bytes;
            let cpu = Cpu::new(2).unwrap().with_last_level_cache(cache_bytes);
            let mut prepared =
                cpu.prepare_sets(&problem, &inputs, CacheState::Cold.into()).unwrap().unwrap();
            assert_eq!(prepared.tensors.len(), 7);
            for (seed, variant) in (3..).zip(Variant::ALL) {
                prepared.new_layout(seed).unwrap();
                prepared.poison().unwrap();
                for set in 0..7 {
                    assert!(!prepared.is_written(set), "{text}");
                }
                for _ in 0..7 {
                    prepared.run(variant, 1).unwrap();
                    let error = expected.error(&prepared.output().unwrap());
                    assert!(error <= expected.tolerance(), "{text}, {variant}: {error:e}");
                }
                assert!((0..7).all(|set| prepared.is_written(set)), "{text}, {variant}");
            }
        }
    }

    #[test]
    fn the_memory_is_what_was_announced() {
        for text in PROBLEMS {
            let problem = problem(text);
            let inputs = Inputs::random(&problem, 1);
            for (cache, cache_bytes) in [
                (CacheState::Warm, 1 << 20),
                (CacheState::Cold, Traffic::of(&problem).fused_bytes * 300),
                (CacheState::Cold, 1),
            ] {
                let cpu = Cpu::new(2).unwrap().with_last_level_cache(cache_bytes);
                let announced = cpu.requirements(&problem, cache.into()).unwrap().memory_bytes;
                let prepared = cpu.prepare_sets(&problem, &inputs, cache.into()).unwrap().unwrap();
                assert_eq!(prepared.tensors.bytes(), announced, "{text}");
                assert_eq!(prepared.tensors.len() == 1, cache == CacheState::Warm);
            }
        }
    }

    #[test]
    fn a_problem_too_small_for_cold_caches_is_refused_with_the_reason() {
        let problem = problem("add_relu/f32/m4.n4");
        let inputs = Inputs::random(&problem, 1);
        let mut cpu = Cpu::new(1).unwrap().with_last_level_cache(32 << 20);
        let reason = cpu.requirements(&problem, CacheState::Cold.into()).unwrap_err();
        assert_eq!(reason, Unsupported::TooSmallForCold { bytes: 192, least_bytes: 4097 });
        assert!(reason.to_string().contains("too small for cold caches"), "{reason}");
        assert!(cpu.prepare(&problem, &inputs, CacheState::Cold.into()).unwrap().is_none());
        assert!(cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().is_some());
    }
}
