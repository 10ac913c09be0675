//! The least value of a smooth function of a few parameters.

/// The lengths of a step, one after the other. Parameters are logarithms, so the first step is a
/// factor of 2.2 and the last one of 5 %.
const STEPS: [f64; 5] = [0.8, 0.4, 0.2, 0.1, 0.05];

/// Rounds over all parameters with one length at most: far more than a search that gets anywhere
/// takes.
const MOST_ROUNDS: usize = 12;

/// The parameters near `start` at which a function is least: one parameter at a time goes up or
/// down by a step as long as that helps, then steps become shorter.
///
/// It needs no derivatives, is the same on every machine, and never leaves the function's domain: a
/// value that is not finite is worse than any other.
pub(super) fn minimise(start: &[f64], mut value: impl FnMut(&[f64]) -> f64) -> Vec<f64> {
    let mut of = |at: &[f64]| Some(value(at)).filter(|value| value.is_finite()).unwrap_or(f64::MAX);
    let mut at = start.to_vec();
    let mut least = of(&at);
    for step in STEPS {
        // When all parameters in a row moved nowhere, none of them moves any more.
        let mut stayed = 0;
        for _ in 0..MOST_ROUNDS {
            let before = least;
            for parameter in 0..at.len() {
                if stayed == at.len() {
                    break;
                }
                stayed += 1;
                let stays = at[parameter];
                for towards in [stays + step, stays - step] {
                    at[parameter] = towards;
                    let there = of(&at);
                    if there < least {
                        least = there;
                        stayed = 0;
                        break;
                    }
                    at[parameter] = stays;
                }
            }
            // A gain that small is not worth another round.
            if before - least < 1e-3 {
                break;
            }
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same search, which asks on when no parameter moves any more.
    fn patient(start: &[f64], value: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        let mut at = start.to_vec();
        for step in STEPS {
            for _ in 0..MOST_ROUNDS {
                let before = value(&at);
                for parameter in 0..at.len() {
                    let least = value(&at);
                    let stays = at[parameter];
                    for towards in [stays + step, stays - step] {
                        at[parameter] = towards;
                        if value(&at) < least {
                            break;
                        }
                        at[parameter] = stays;
                    }
                }
                if before - value(&at) < 1e-3 {
                    break;
                }
            }
        }
        at
    }

    proptest! {
        #[test]
        fn a_search_ends_where_one_that_asks_on_does(
            lowest in prop::collection::vec(-3.0..3.0_f64, 1..6),
            skew in -0.9..0.9_f64,
        ) {
            let bowl = |at: &[f64]| {
                let off: Vec<f64> = at.iter().zip(&lowest).map(|(at, lowest)| at - lowest).collect();
                let squares: f64 = off.iter().map(|off| off * off).sum();
                let products: f64 = off.windows(2).map(|pair| pair[0] * pair[1]).sum();
                squares + skew * products
            };
            let start = vec![0.0; lowest.len()];
            prop_assert_eq!(minimise(&start, bowl), patient(&start, bowl));
        }
    }

    #[test]
    fn a_skewed_bowl_is_descended() {
        let bowl = |at: &[f64]| {
            let (x, y) = (at[0] - 1.3, at[1] + 2.1);
            100.0 * (x * x + x * y + y * y)
        };
        let found = minimise(&[5.0, 5.0], bowl);
        assert!((found[0] - 1.3).abs() < 0.06 && (found[1] + 2.1).abs() < 0.06, "{found:?}");
    }

    #[test]
    fn values_that_are_no_numbers_are_avoided() {
        let found = minimise(&[1.0], |at| if at[0] < 0.5 { f64::NAN } else { at[0] });
        assert!(found[0] >= 0.5 && found[0] < 0.6, "{found:?}");
        assert_eq!(minimise(&[1.0], |_| f64::INFINITY), [1.0]);
        assert!(minimise(&[], |_| 1.0).is_empty());
    }
}
