//! The states of a machine, from short looks at it.

use fused_kernels::MachineReading;
use fusion_cost_model::calibration::MachineState;

use super::statistics::{median, quantile_of};
use super::surroundings::{LEAST_HANDOFF_RATIO, LEAST_TRIAD_RATIO, Surroundings};

/// Between two states there is a valley: the middle half of the way from one to the other has at most
/// this share of the readings of the smaller one.
const MOST_BETWEEN: f64 = 0.1;

/// A state is seen by this many processes at least. One odd reading is an odd reading.
const LEAST_PROCESSES: usize = 2;

/// A state is seen by this share of the processes at least. What lasts for seconds of a run of minutes
/// disturbs some samples, and is nothing that a machine stays in: no problem meets it often enough
/// for a speedup of its own.
const LEAST_SHARE: f64 = 0.05;

/// Which states a machine has, and how to tell them apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct States {
    /// Where hand-off times are cut, in the logarithm.
    handoff_cuts: Vec<f64>,
    /// Where triads are cut, in the logarithm.
    triad_cuts: Vec<f64>,
    /// The classes of each state, the one with the most processes first.
    classes: Vec<[usize; 2]>,
    states: Vec<MachineState>,
}

impl States {
    /// Finds the states in what was seen around every process of a run. Processes without a reading
    /// say nothing.
    #[must_use]
    pub fn find(surroundings: &[Surroundings]) -> Self {
        let readings: Vec<MachineReading> =
            surroundings.iter().filter_map(Surroundings::reading).collect();
        let logs = |of: fn(&MachineReading) -> Option<f64>| {
            let mut logs: Vec<f64> = readings.iter().filter_map(of).map(f64::ln).collect();
            logs.sort_unstable_by(f64::total_cmp);
            logs
        };
        let mut found = Self {
            handoff_cuts: cuts(&logs(|one| one.handoff_us), LEAST_HANDOFF_RATIO.ln()),
            triad_cuts: cuts(&logs(|one| Some(one.triad_gb_per_s)), LEAST_TRIAD_RATIO.ln()),
            ..Self::default()
        };
        let mut members: Vec<([usize; 2], Vec<&MachineReading>)> = Vec::new();
        for reading in &readings {
            let class = found.class(reading);
            match members.iter_mut().find(|(known, _)| *known == class) {
                Some((_, of_class)) => of_class.push(reading),
                None => members.push((class, vec![reading])),
            }
        }
        members.sort_by_key(|(class, of_class)| (std::cmp::Reverse(of_class.len()), *class));
        #[expect(clippy::cast_precision_loss, reason = "a count of processes")]
        let least = (LEAST_SHARE * readings.len() as f64).max(LEAST_PROCESSES as f64);
        #[expect(clippy::cast_precision_loss, reason = "a count of processes")]
        let is_seen =
            |(_, of_class): &([usize; 2], Vec<&MachineReading>)| of_class.len() as f64 >= least;
        // Of very few processes the first one is a state all the same.
        let kept = members.iter().filter(|one| is_seen(one)).count().max(1);
        for ((class, of_class), id) in members.into_iter().take(kept).zip(1..) {
            found.classes.push(class);
            found.states.push(describe(id, &of_class));
        }
        found
    }

    /// The state of a process: the nearest one where its own was seen too rarely to be one; `None`
    /// where nothing was read.
    #[must_use]
    pub fn of(&self, surroundings: &Surroundings) -> Option<u32> {
        let reading = surroundings.reading()?;
        let class = self.class(&reading);
        if let Some(index) = self.classes.iter().position(|known| *known == class) {
            return Some(self.states[index].id);
        }
        let distance = |state: &MachineState| {
            let handoff = reading.handoff_us.zip(state.handoff_us);
            let handoff = handoff.map_or(0.0, |(a, b)| (a / b).ln() / LEAST_HANDOFF_RATIO.ln());
            let triad = (reading.triad_gb_per_s / state.triad_gb_per_s).ln();
            handoff.hypot(triad / LEAST_TRIAD_RATIO.ln())
        };
        let nearest = self.states.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.map(|state| state.id)
    }

    /// The states, the one that most processes met first.
    #[must_use]
    pub fn describe(&self) -> &[MachineState] {
        &self.states
    }

    fn class(&self, reading: &MachineReading) -> [usize; 2] {
        let below = |cuts: &[f64], value: f64| cuts.partition_point(|cut| *cut < value.ln());
        let handoff = reading.handoff_us.map_or(0, |us| below(&self.handoff_cuts, us));
        [handoff, below(&self.triad_cuts, reading.triad_gb_per_s)]
    }
}

fn describe(id: u32, readings: &[&MachineReading]) -> MachineState {
    let triads: Vec<f64> = readings.iter().map(|one| one.triad_gb_per_s).collect();
    let handoffs: Vec<f64> = readings.iter().filter_map(|one| one.handoff_us).collect();
    MachineState {
        id,
        handoff_us: (!handoffs.is_empty()).then(|| median(&handoffs)),
        triad_gb_per_s: median(&triads),
        triad_range: [0.05, 0.95].map(|share| quantile_of(&triads, share)),
        processes: u32::try_from(readings.len()).unwrap_or(u32::MAX),
    }
}

/// Where to cut sorted values into groups that lie at least `least` apart with hardly anything in
/// between.
fn cuts(sorted: &[f64], least: f64) -> Vec<f64> {
    let Some(at) = cut(sorted, least) else { return Vec::new() };
    let (low, high) = sorted.split_at(at);
    let mut all = cuts(low, least);
    all.push(0.5 * (low[at - 1] + high[0]));
    all.extend(cuts(high, least));
    all
}

/// Where two groups of sorted values part: where the squares within them are least (Otsu, IEEE
/// Transactions on Systems, Man and Cybernetics 1979), if they are two groups at all.
fn cut(sorted: &[f64], least: f64) -> Option<usize> {
    let count = sorted.len();
    if count < 2 * LEAST_PROCESSES {
        return None;
    }
    let mut sums = vec![0.0];
    for value in sorted {
        sums.push(sums[sums.len() - 1] + value);
    }
    // The squares within are least where those between are most.
    #[expect(clippy::cast_precision_loss, reason = "a count of processes")]
    let between = |at: usize| {
        let (low, high) = (at as f64, (count - at) as f64);
        low * high * (sums[at] / low - (sums[count] - sums[at]) / high).powi(2)
    };
    // A single odd value is parted too, so that it does not draw others to its side.
    let at = (1..count).max_by(|a, b| between(*a).total_cmp(&between(*b)))?;
    let (low, high) = (median(&sorted[..at]), median(&sorted[at..]));
    let distance = high - low;
    let middle = low + 0.25 * distance..high - 0.25 * distance;
    let inside = sorted.iter().filter(|value| middle.contains(value)).count();
    #[expect(clippy::cast_precision_loss, reason = "a count of processes")]
    let is_valley = inside as f64 <= MOST_BETWEEN * at.min(count - at) as f64;
    (distance >= least && is_valley).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn process(handoff_us: Option<f64>, triad_gb_per_s: f64) -> Surroundings {
        let reading = MachineReading { handoff_us, triad_gb_per_s };
        Surroundings { readings: [Some(reading); 2], ..Surroundings::default() }
    }

    /// Processes around some states, with noise of a tenth.
    fn noisy(states: &[(f64, f64)], each: usize) -> Vec<Surroundings> {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut around = |value: f64| value * random.random_range(0.9..1.1);
        let all = (0..each).flat_map(|_| states);
        all.map(|&(handoff, triad)| process(Some(around(handoff)), around(triad))).collect()
    }

    #[test]
    fn the_two_states_of_a_virtual_machine_are_told_apart() {
        let seen = noisy(&[(0.11, 57.0), (0.57, 112.0)], 12);
        let states = States::find(&seen);
        let [first, second] = states.describe() else { panic!("{states:?}") };
        assert_eq!((first.id, second.id, first.processes), (1, 2, 12));
        let [fast, slow] = [&seen[0], &seen[1]].map(|one| states.of(one).unwrap());
        assert_ne!(fast, slow);
        for (index, one) in seen.iter().enumerate() {
            assert_eq!(states.of(one), Some(if index % 2 == 0 { fast } else { slow }));
        }
        let of_fast = &states.describe()[fast as usize - 1];
        assert!((of_fast.handoff_us.unwrap() / 0.11).ln().abs() < 0.1, "{of_fast:?}");
        assert!((of_fast.triad_gb_per_s / 57.0).ln().abs() < 0.1, "{of_fast:?}");
    }

    #[test]
    fn a_neighbour_on_the_bus_is_a_state_and_three_are_three() {
        let states = States::find(&noisy(&[(0.11, 50.0), (0.11, 25.0)], 10));
        assert_eq!(states.describe().len(), 2);
        let states = States::find(&noisy(&[(0.11, 57.0), (0.14, 120.0), (0.57, 112.0)], 10));
        assert_eq!(states.describe().len(), 3, "{states:?}");
    }

    #[test]
    fn noise_is_one_state() {
        assert_eq!(States::find(&noisy(&[(0.2, 60.0)], 40)).describe().len(), 1);
        let mut random = ChaCha8Rng::seed_from_u64(2);
        // A wide spread without a valley.
        let wide: Vec<_> = (0..200)
            .map(|_| process(Some(random.random_range(0.1..0.6)), random.random_range(40.0..120.0)))
            .collect();
        assert_eq!(States::find(&wide).describe().len(), 1);
        let odd = [noisy(&[(0.2, 60.0)], 20), vec![process(Some(3.0), 60.0)]].concat();
        let states = States::find(&odd);
        assert_eq!(states.describe().len(), 1);
        assert_eq!(states.of(&odd[20]), Some(1));
    }

    #[test]
    fn what_passes_within_seconds_of_a_long_run_is_no_state() {
        // The hypervisor gave the processors to others for eight processes of a run of ten minutes.
        let run = |odd: usize| {
            let all = [noisy(&[(0.7, 23.0)], 400 - odd), noisy(&[(29.0, 4.4)], odd)].concat();
            (States::find(&all), all)
        };
        let (states, all) = run(8);
        assert_eq!(states.describe().len(), 1, "{states:?}");
        assert_eq!(states.of(&all[399]), Some(1), "it belongs to the nearest one");
        // For half a minute of it they were in a state.
        assert_eq!(run(20).0.describe().len(), 2);
    }

    #[test]
    fn without_readings_there_are_no_states() {
        let states = States::find(&[Surroundings::default(); 3]);
        assert_eq!((states.describe(), states.of(&Surroundings::default())), (&[][..], None));
        // One thread hands nothing over.
        let states = States::find(&[process(None, 20.0), process(None, 20.5)]);
        assert_eq!(states.describe()[0].handoff_us, None);
        assert_eq!(States::find(&[process(None, 20.0)]).describe().len(), 1);
    }
}
