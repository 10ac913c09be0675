//! Runs a target on inputs that are made from its seeds.

use std::any::Any;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use twox_hash::XxHash3_64;

use crate::Target;
use crate::mutation::Mutation;

/// Inputs that are kept besides the seeds.
const MOST_KEPT: usize = 1000;

/// What a reader says of an input is about the input if it is longer than this.
const MOST_SAID: usize = 300;

/// No input of these sizes may take longer, also on a busy machine: it would hang a program.
const MOST_TIME: Duration = Duration::from_secs(20);

/// What a target went through.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// Inputs that it was run on.
    pub executions: u64,
    /// Those that made it say something new.
    pub kept: usize,
    /// The longest time for one of them.
    pub slowest: Duration,
}

/// An input for which something does not hold that must.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The input.
    pub input: Vec<u8>,
    /// How the target panicked, or how long it took.
    pub what: String,
}

/// Runs a target on its seeds, and then on changed ones until the time is over. One seed gives one
/// series of inputs; the time says how far it is followed.
///
/// # Errors
///
/// The first [`Finding`].
pub fn drive(target: &Target, seed: u64, time: Duration) -> Result<Figures, Box<Finding>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ XxHash3_64::oneshot(target.name.as_bytes()));
    let mut inputs = (target.seeds)();
    let seeds = inputs.len();
    let mutation = Mutation::of(&inputs);
    let (mut figures, mut said) = (Figures::default(), HashSet::new());
    let began = Instant::now();
    for seed in &inputs {
        said.insert(gist(&run(target, seed, &mut figures)?));
    }
    while began.elapsed() < time {
        let input = mutation.changed(&inputs, &mut random);
        let answer = run(target, &input, &mut figures)?;
        if answer.len() > MOST_SAID || !said.insert(gist(&answer)) {
            continue;
        }
        figures.kept += 1;
        if inputs.len() < seeds + MOST_KEPT {
            inputs.push(input);
        } else {
            let place = random.random_range(seeds..inputs.len());
            inputs[place] = input;
        }
    }
    Ok(figures)
}

fn run(target: &Target, input: &[u8], figures: &mut Figures) -> Result<String, Box<Finding>> {
    let began = Instant::now();
    let answer = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let took = began.elapsed();
    figures.executions += 1;
    figures.slowest = figures.slowest.max(took);
    let finding = |what| Box::new(Finding { input: input.to_vec(), what });
    let answer = answer.map_err(|panic| finding(words_of(&*panic)))?;
    if took > MOST_TIME {
        return Err(finding(format!("it took {:.0} s", took.as_secs_f64())));
    }
    Ok(answer)
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it panicked".to_owned())
}

/// What is left of an answer without what it cites of the input, as a number.
fn gist(answer: &str) -> u64 {
    // An error of TOML ends with what is wrong; the line that it cites comes before.
    let last = answer.trim_end().rsplit('\n').next().unwrap_or_default();
    let (mut words, mut cited) = (String::new(), None);
    for letter in last.chars() {
        match cited {
            Some(quote) if quote == letter => cited = None,
            Some(_) => {}
            None if matches!(letter, '`' | '"') => cited = Some(letter),
            None if letter.is_ascii_digit() => {}
            None => words.push(letter),
        }
    }
    XxHash3_64::oneshot(words.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::str;

    use super::*;

    /// Takes numbers in brackets, and cannot stand the one that is 7 above 90.
    const FRAGILE: Target = Target {
        name: "fragile",
        seeds: || vec![b"[10]".to_vec(), b"[86]".to_vec()],
        run: |bytes| {
            let text = str::from_utf8(bytes).unwrap_or_default();
            let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
            let Some(inner) = inner else { return "no brackets".to_owned() };
            match inner.parse::<u8>() {
                Ok(97) => panic!("97 it is"),
                Ok(number) if number > 90 => "above 90".to_owned(),
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            }
        },
    };

    #[test]
    fn a_planted_panic_is_found_and_what_is_new_is_kept() {
        let finding = drive(&FRAGILE, 1, Duration::from_secs(60)).unwrap_err();
        assert_eq!((finding.what.as_str(), finding.input.as_slice()), ("97 it is", &b"[97]"[..]));
        let tame = Target { run: |bytes| bytes.len().to_string(), ..FRAGILE };
        let figures = drive(&tame, 1, Duration::from_millis(20)).unwrap();
        assert!(figures.executions > 100 && figures.slowest < Duration::from_secs(1));
        assert_eq!(figures.kept, 0, "numbers make no difference");
        let words = Target { run: |bytes| "x".repeat(bytes.len().min(6)), ..FRAGILE };
        assert!(drive(&words, 1, Duration::from_millis(20)).unwrap().kept >= 3);
    }

    #[test]
    fn what_is_cited_makes_nothing_new() {
        let same = |one: &str, other: &str| gist(one) == gist(other);
        assert!(same("line 3: `abc` is not a name", "line 12: `x` is not a name"));
        assert!(same("at line 1\n1 | a = b\nkey \"a\" is wrong\n", "key \"ccc\" is wrong"));
        assert!(!same("it is not a name", "it is not a number"));
    }
}
