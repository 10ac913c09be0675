//! Kernels of a GPU under a limit whenever they run: one can hang long after its first run.

use std::time::{Duration, Instant};

use fused_kernels::{
    BackendError, FirstRuns, KernelFacts, OutputDigest, Prepared, Sensors, ThreadCounters, Variant,
};

use super::progress::Progress;

/// How often a process says that it still times kernels. Its caller wakes up to hear it, so that it is
/// rare next to the samples, of which a second has hundreds.
const BETWEEN_NOTES: Duration = Duration::from_secs(1);

/// When the limit begins.
enum Says {
    /// Before every call, and after it what is done then: where no time is taken.
    EveryCall { after: String },
    /// Before some of the samples.
    NowAndThen { last: Option<Instant> },
}

/// A prepared problem whose process is killed when its kernels do not end.
pub(super) struct Watched<'a> {
    prepared: &'a mut dyn Prepared,
    progress: &'a Progress,
    says: Says,
}

impl<'a> Watched<'a> {
    /// For proofs: each call is named by itself, and `after` is what is done when it has ended.
    pub(super) fn proved(
        prepared: &'a mut dyn Prepared,
        progress: &'a Progress,
        after: &str,
    ) -> Self {
        Self { prepared, progress, says: Says::EveryCall { after: after.to_owned() } }
    }

    /// For samples: all kernels are named, since both variants take turns between two notes.
    pub(super) fn timed(prepared: &'a mut dyn Prepared, progress: &'a Progress) -> Self {
        Self { prepared, progress, says: Says::NowAndThen { last: None } }
    }

    /// Does something with the kernels of a variant.
    fn limited<R>(&mut self, variant: Variant, does: impl FnOnce(&mut dyn Prepared) -> R) -> R {
        match &mut self.says {
            Says::EveryCall { after } => {
                self.progress.limited(format!("ran {}", kernels(self.prepared, &[variant])));
                let done = does(self.prepared);
                self.progress.doing(after.as_str());
                done
            }
            Says::NowAndThen { last } => {
                let between = BETWEEN_NOTES.min(self.progress.kernel_limit() / 4);
                if last.is_none_or(|last| last.elapsed() >= between) {
                    *last = Some(Instant::now());
                    self.progress
                        .limited(format!("timed {}", kernels(self.prepared, &Variant::ALL)));
                }
                does(self.prepared)
            }
        }
    }
}

/// The kernels of some variants, each once.
pub(super) fn kernels(prepared: &dyn Prepared, variants: &[Variant]) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in variants.iter().flat_map(|variant| prepared.kernels(*variant)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

impl Prepared for Watched<'_> {
    fn kernels(&self, variant: Variant) -> Vec<String> {
        self.prepared.kernels(variant)
    }

    fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
        self.prepared.new_layout(seed)
    }

    fn poison(&mut self) -> Result<(), BackendError> {
        self.prepared.poison()
    }

    fn run_each(&mut self, hears: &mut FirstRuns<'_>) -> Result<(), BackendError> {
        self.prepared.run_each(hears)
    }

    fn run(&mut self, variant: Variant, iterations: u32) -> Result<Duration, BackendError> {
        self.limited(variant, |prepared| prepared.run(variant, iterations))
    }

    fn run_behind(
        &mut self,
        variant: Variant,
        untimed: u32,
        iterations: u32,
    ) -> Result<[Duration; 2], BackendError> {
        self.limited(variant, |prepared| prepared.run_behind(variant, untimed, iterations))
    }

    fn run_steps(&mut self, iterations: u32) -> Result<Option<Vec<f64>>, BackendError> {
        self.limited(Variant::Unfused, |prepared| prepared.run_steps(iterations))
    }

    fn output(&mut self) -> Result<Vec<f32>, BackendError> {
        self.prepared.output()
    }

    fn output_digest(&mut self) -> Result<OutputDigest, BackendError> {
        self.prepared.output_digest()
    }

    fn scratch_bytes(&self, variant: Variant) -> u64 {
        self.prepared.scratch_bytes(variant)
    }

    fn kernel_facts(&self, variant: Variant) -> Vec<KernelFacts> {
        self.prepared.kernel_facts(variant)
    }

    fn sensors(&mut self) -> Sensors {
        self.prepared.sensors()
    }

    fn counters(&mut self) -> Vec<ThreadCounters> {
        self.prepared.counters()
    }

    fn huge_page_share(&self) -> Option<f64> {
        self.prepared.huge_page_share()
    }
}

#[cfg(test)]
mod tests {
    use fused_kernels::worker::Notes;

    use super::*;

    /// Whose variants have a kernel in common; takes no time.
    struct Device(u32);

    impl Prepared for Device {
        fn kernels(&self, variant: Variant) -> Vec<String> {
            vec!["linear".to_owned(), variant.name().to_owned()]
        }
        fn new_layout(&mut self, _: u64) -> Result<(), BackendError> {
            Ok(())
        }
        fn poison(&mut self) -> Result<(), BackendError> {
            Ok(())
        }
        fn run(&mut self, _: Variant, iterations: u32) -> Result<Duration, BackendError> {
            self.0 += iterations;
            Ok(Duration::from_micros(1))
        }
        fn output(&mut self) -> Result<Vec<f32>, BackendError> {
            Ok(vec![0.5])
        }
    }

    #[test]
    fn a_kernel_of_both_variants_is_named_once() {
        assert_eq!(kernels(&Device(0), &Variant::ALL), "linear, unfused, fused");
    }

    #[test]
    fn samples_are_taken_as_without_it_and_few_of_them_are_said() {
        let progress = Progress::new(Notes::default(), Duration::from_secs(60));
        let mut device = Device(0);
        let mut watched = Watched::timed(&mut device, &progress);
        for _ in 0..3 {
            assert_eq!(watched.run(Variant::Fused, 2).unwrap(), Duration::from_micros(1));
        }
        let Says::NowAndThen { last: Some(first) } = watched.says else {
            panic!("nothing is said")
        };
        watched.run(Variant::Fused, 1).unwrap();
        let Says::NowAndThen { last } = watched.says else { panic!("it says more") };
        let is_new = last.is_some_and(|last| last >= first + BETWEEN_NOTES);
        assert!(last == Some(first) || is_new, "{first:?} {last:?}");
        assert_eq!(device.0, 7);
    }
}
