//! Sizes swept from the command line.

use std::str::FromStr;

use fusion_cost_model::Problem;

/// One problem, or several that differ in some numbers: `linear_bias/f32/m{64..4096*2}.k64.n64`.
///
/// In braces stands a list (`{1,8,32}`), a range with a factor (`{64..4096*2}`), or a range with a
/// step (`{64..512+64}`). The last number of a range is in it if it is hit. Several braces give
/// every combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep(Vec<Problem>);

/// More is a typing error, or a run of hours.
const MOST: usize = 1000;

impl Sweep {
    /// The problems, in the order of the numbers.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let texts = expand(text)?;
        let problem = |text: &String| text.parse().map_err(|error| error_in(text, &error));
        texts.iter().map(problem).collect::<Result<_, _>>().map(Self)
    }
}

fn error_in(text: &str, error: &fusion_cost_model::Error) -> String {
    let error = error.to_string();
    if error.contains(text) { error } else { format!("{text}: {error}") }
}

/// A text for each combination of the numbers in its braces.
fn expand(text: &str) -> Result<Vec<String>, String> {
    let Some((before, rest)) = text.split_once('{') else { return Ok(vec![text.to_owned()]) };
    let Some((inside, after)) = rest.split_once('}') else {
        return Err(format!("`{{{rest}` has no closing brace"));
    };
    let numbers = numbers(inside)?;
    let rest = expand(after)?;
    if numbers.len() * rest.len() > MOST {
        return Err(format!("it stands for more than {MOST} problems"));
    }
    let with = |number: &u64| {
        let number = *number;
        rest.iter().map(move |rest| format!("{before}{number}{rest}"))
    };
    Ok(numbers.iter().flat_map(with).collect())
}

fn numbers(inside: &str) -> Result<Vec<u64>, String> {
    let wrong = || {
        format!(
            "`{{{inside}}}`: write a list {{1,8,32}}, or a range {{64..4096*2}} or {{64..512+64}}"
        )
    };
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let Some((first, rest)) = inside.split_once("..") else {
        return inside.split(',').map(number).collect();
    };
    let (last, step, is_factor) = match (rest.split_once('*'), rest.split_once('+')) {
        (Some((last, factor)), None) => (last, number(factor)?, true),
        (None, Some((last, step))) => (last, number(step)?, false),
        _ => return Err(wrong()),
    };
    let (first, last) = (number(first)?, number(last)?);
    let is_endless = if is_factor { step < 2 || first == 0 } else { step == 0 };
    if is_endless || first > last {
        return Err(wrong());
    }
    let next = |at: &u64| {
        let next = if is_factor { at.checked_mul(step) } else { at.checked_add(step) };
        next.filter(|next| *next <= last)
    };
    let all: Vec<u64> = std::iter::successors(Some(first), next).take(MOST + 1).collect();
    if all.len() > MOST { Err(format!("it stands for more than {MOST} problems")) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let sweep: Sweep = text.parse().unwrap();
        sweep.problems().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn numbers_in_braces_are_swept() {
        assert_eq!(
            problems("linear_bias/f32/m{64..300*2}.k8.n{1,5}"),
            [64, 128, 256]
                .iter()
                .flat_map(|m| [1, 5].map(|n| format!("linear_bias/f32/m{m}.k8.n{n}")))
                .collect::<Vec<_>>()
        );
        assert_eq!(
            problems("add_relu/f32/m{64..192+64}.n4"),
            ["add_relu/f32/m64.n4", "add_relu/f32/m128.n4", "add_relu/f32/m192.n4"]
        );
        assert_eq!(problems("add_relu/f32/m1.n4"), ["add_relu/f32/m1.n4"]);
    }

    #[test]
    fn what_is_no_sweep_says_how_to_write_one() {
        let message = |text: &str| text.parse::<Sweep>().unwrap_err();
        for text in ["m{}", "m{1..2}", "m{1..8*1}", "m{0..8*2}", "m{8..4*2}", "m{1..8+0}", "m{a}"] {
            let message = message(&format!("add_relu/f32/{text}.n4"));
            assert!(message.contains("write a list"), "{message}");
        }
        assert!(message("add_relu/f32/m{1.n4").contains("no closing brace"));
        assert!(message("add_relu/f32/m{1..99999+1}.n4").contains("more than 1000"));
        assert!(message("add_relu/f32/m{1..40+1}.n{1..40+1}").contains("more than 1000"));
        assert!(message("add_rleu/f32/m{1,2}.n4").contains("did you mean"));
    }
}
