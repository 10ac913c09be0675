//! How far estimates are off, from estimates of what was measured.

/// Half-widths of 95 % intervals, in standard deviations that a model states: from how far its
/// estimates of measured values, each made without that value, were off.
///
/// It is the larger of two numbers. Student's t is what a right model would need with that many
/// values and its prior. The conformal quantile is what this one needs: the 95 % quantile of error
/// over standard deviation, which makes an interval right whatever the model's faults, as long as
/// questions are like measured problems.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    half_width: f64,
}

/// What intervals hold.
const SHARE: f64 = 0.95;

/// Standard deviations of a normal distribution within which they do.
const Z: f64 = 1.959_963_984_540_054;

/// Degrees of freedom before there is any value: what is believed of values beforehand comes from
/// other machines, and is worth a few.
const PRIOR_DEGREES: usize = 3;

impl Spread {
    /// From pairs of an error and its standard deviation.
    pub(super) fn of(left_out: impl IntoIterator<Item = [f64; 2]>) -> Self {
        let scores = left_out.into_iter().map(|[error, sd]| (error / sd).abs());
        let scores: Vec<f64> = scores.filter(|score| score.is_finite()).collect();
        let student = student(scores.len() + PRIOR_DEGREES);
        Self { half_width: quantile(scores).map_or(student, |conformal| conformal.max(student)) }
    }

    /// The wider of two.
    pub(super) const fn or_wider(self, other: Self) -> Self {
        Self { half_width: self.half_width.max(other.half_width) }
    }

    /// The standard deviation of a normal distribution whose interval has half of this width.
    pub(super) fn sd_of(half_width: f64) -> f64 {
        half_width / Z
    }

    /// Half of the width of an interval around a value with a standard deviation.
    pub(super) const fn half_width(&self, sd: f64) -> f64 {
        self.half_width * sd
    }
}

/// The value that a further one stays below with a probability of 95 %, whatever their distribution:
/// the largest, where there are too few for that. `None` without any.
pub(super) fn quantile(scores: Vec<f64>) -> Option<f64> {
    let count = scores.len();
    weighted_quantile(scores.into_iter().map(|score| [score, 1.0]).collect(), count)
}

/// The same for a value of a further group, where those of a group are alike: each group counts once,
/// however many values it has (Lee, Barber and Willett, arXiv:2306.06342). Of too few groups for that, it
/// is the largest value times a factor that is about what normal values of four groups and more need.
pub(super) fn quantile_of_groups(groups: &[Vec<f64>]) -> Option<f64> {
    /// From 19 groups on, a further one has the largest value in 5 % of all cases at most.
    const ENOUGH: usize = 19;
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let factor = if groups.len() < ENOUGH { 1.0 + 3.0 / groups.len() as f64 } else { 1.0 };
    let weighted = |group: &Vec<f64>| {
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let weight = (group.len() as f64).recip();
        group.iter().map(move |score| [*score, weight]).collect::<Vec<_>>()
    };
    let found = weighted_quantile(groups.iter().flat_map(weighted).collect(), groups.len());
    found.map(|score| factor * score)
}

/// Of scores with weights, whose sum is a count.
fn weighted_quantile(mut scores: Vec<[f64; 2]>, count: usize) -> Option<f64> {
    scores.sort_unstable_by(|a, b| a[0].total_cmp(&b[0]));
    // Weights such as a third are rounded, and so are their sums.
    const ROUNDED: f64 = 1e-9;
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let wanted = SHARE * (count + 1) as f64 - ROUNDED;
    let mut sum = 0.0;
    let reaches = |[_, weight]: &&[f64; 2]| {
        sum += weight;
        sum >= wanted
    };
    scores.iter().find(reaches).or(scores.last()).map(|[score, _]| *score)
}

/// The 97.5 % quantile of Student's distribution with at least three degrees of freedom, by Cornish and
/// Fisher's expansion (Abramowitz and Stegun, 26.7.5).
fn student(degrees: usize) -> f64 {
    const Z2: f64 = Z * Z;
    let terms = [
        (Z2 + 1.0) * Z / 4.0,
        ((5.0 * Z2 + 16.0) * Z2 + 3.0) * Z / 96.0,
        (((3.0 * Z2 + 19.0) * Z2 + 17.0) * Z2 - 15.0) * Z / 384.0,
        ((((79.0 * Z2 + 776.0) * Z2 + 1482.0) * Z2 - 1920.0) * Z2 - 945.0) * Z / 92_160.0,
    ];
    #[expect(clippy::cast_precision_loss, reason = "degrees of freedom")]
    let degrees = degrees as f64;
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / degrees) + Z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_quantiles_are_those_of_tables() {
        for (degrees, expected) in
            [(3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (30, 2.042), (999, 1.962)]
        {
            let found = student(degrees);
            assert!((found - expected).abs() < 0.005, "{degrees}: {found}");
        }
    }

    #[test]
    fn the_quantile_is_the_largest_of_a_few() {
        assert_eq!(quantile(vec![]), None);
        assert_eq!(quantile(vec![1.0, 3.0, 2.0]), Some(3.0));
        let hundred = (1..=99).rev().map(f64::from).collect();
        assert_eq!(quantile(hundred), Some(95.0));
    }

    #[test]
    fn a_group_counts_once_however_many_values_it_has() {
        assert_eq!(quantile_of_groups(&[]), None);
        assert_eq!(quantile_of_groups(&[vec![1.0, 2.0], vec![0.5]]), Some(5.0));
        let few = |count| quantile_of_groups(&vec![vec![1.0]; count]);
        assert_eq!([6, 18, 19].map(few), [Some(1.5), Some(1.0 + 3.0 / 18.0), Some(1.0)]);
        let hundred = || (1..=99).rev().map(|value| vec![f64::from(value)]);
        assert_eq!(quantile_of_groups(&hundred().collect::<Vec<_>>()), Some(95.0));
        // Ten thousand small values are one group, and so are three large ones.
        let mut groups: Vec<Vec<f64>> = hundred().take(97).collect();
        groups.push(vec![0.0; 10_000]);
        groups.push(vec![1e3; 3]);
        assert_eq!(quantile_of_groups(&groups), Some(96.0));
    }

    #[test]
    fn an_interval_is_at_least_students_and_at_least_what_was_needed() {
        let modest = Spread::of((0..40).map(|_| [0.1, 1.0]));
        assert!((modest.half_width(2.0) - 2.0 * student(43)).abs() < 1e-12);
        let boastful = Spread::of((0..40).map(|index| [f64::from(index), 1.0]));
        assert_eq!(boastful.half_width(1.0), 38.0);
        assert_eq!(Spread::of([]).half_width(1.0), student(3));
        assert_eq!(Spread::of([[f64::NAN, 1.0]]), Spread::of([]));
    }
}
