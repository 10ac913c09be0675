//! A part of a plan, for a task of many: problems are dealt by a hash of their names, so that every
//! task agrees on it whatever else the plan holds.

use std::fmt;
use std::str::FromStr;

use fusion_cost_model::Problem;

use super::stable_hash::stable_hash;
use crate::exit::UsageError;

/// As many tasks as a plan can be dealt to.
const MOST: u32 = 10_000;

/// A part of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 0.
    index: u32,
    /// Of how many.
    count: u32,
}

impl Shard {
    fn new(index: u32, count: u32) -> Option<Self> {
        (index < count && count <= MOST).then_some(Self { index, count })
    }

    /// Whether a problem is of this part: it is of one of all.
    #[must_use]
    pub fn holds(self, problem: &Problem) -> bool {
        stable_hash(&problem.to_string()) % u64::from(self.count) == u64::from(self.index)
    }
}

/// As on the command line: `2/8` is the second of eight.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.count)
    }
}

/// Which part is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardChoice {
    /// This one.
    Named(Shard),
    /// The one of this task, out of the number given here or by the scheduler.
    OfTask(Option<u32>),
}

impl FromStr for ShardChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "it must be I/N with I from 1 to N and N up to {MOST}, or auto, or auto/N; not `{text}`"
            )
        };
        let count = |text: &str| text.parse().ok().filter(|count| (1..=MOST).contains(count));
        match text.split_once('/') {
            None if text == "auto" => Ok(Self::OfTask(None)),
            None => Err(wrong()),
            Some(("auto", all)) => Ok(Self::OfTask(Some(count(all).ok_or_else(wrong)?))),
            Some((one, all)) => {
                let index = one.parse::<u32>().ok().and_then(|one| one.checked_sub(1));
                let shard = index.zip(count(all)).and_then(|(one, all)| Shard::new(one, all));
                shard.map(Self::Named).ok_or_else(wrong)
            }
        }
    }
}

impl ShardChoice {
    /// The part, by what the scheduler says of this task: the index of a task of a Kubernetes Job or
    /// of a Slurm array.
    ///
    /// With a named number of parts an index counts from 0. Without one, Slurm must say which indices
    /// its array has.
    ///
    /// # Errors
    ///
    /// [`UsageError`] when nothing says which one it is.
    pub fn shard(self, variable: impl Fn(&str) -> Option<String>) -> Result<Shard, UsageError> {
        let named = match self {
            Self::Named(shard) => return Ok(shard),
            Self::OfTask(named) => named,
        };
        let number = |name: &str| -> Result<Option<u32>, UsageError> {
            let Some(text) = variable(name) else { return Ok(None) };
            let wrong = || {
                UsageError(format!(
                    "{name} is {text:?}, which is not the number of a task; name the part, as in --shard 2/8"
                ))
            };
            text.trim().parse().map(Some).map_err(|_| wrong())
        };
        let kubernetes = number("JOB_COMPLETION_INDEX")?;
        let slurm = number("SLURM_ARRAY_TASK_ID")?;
        let Some(index) = kubernetes.or(slurm) else {
            return Err(UsageError(
                "--shard auto is for a task of a Slurm array or of an indexed Kubernetes Job, and \
                 neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set; name the part, as in \
                 --shard 2/8"
                    .to_owned(),
            ));
        };
        let of_array = || -> Result<Option<(u32, u32)>, UsageError> {
            let least = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
            let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
            let count = number("SLURM_ARRAY_TASK_COUNT")?;
            let part = index.checked_sub(least).map(|from_0| from_0 / step);
            Ok(part.zip(count))
        };
        let part = match named {
            Some(count) => Some((index, count)),
            None if kubernetes.is_some() => None,
            None => of_array()?,
        };
        let Some((index, count)) = part else {
            return Err(UsageError(
                "--shard auto does not know of how many parts this is one; name their number, as in \
                 --shard auto/8"
                    .to_owned(),
            ));
        };
        Shard::new(index, count).ok_or_else(|| {
            UsageError(format!(
                "--shard auto/{count} has parts 0 to {}, and this task is {index}; let the array \
                 begin at 0",
                count.saturating_sub(1)
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> Result<ShardChoice, String> {
        text.parse()
    }

    #[test]
    fn every_problem_is_of_one_part() {
        let parts: Vec<Shard> = (0..7).filter_map(|index| Shard::new(index, 7)).collect();
        let mut sizes = vec![0; parts.len()];
        for m in 1..=200 {
            let problem = format!("linear_bias/f32/m{m}.k64.n64").parse().unwrap();
            let of: Vec<usize> =
                (0..parts.len()).filter(|part| parts[*part].holds(&problem)).collect();
            assert_eq!(of.len(), 1, "{problem}");
            sizes[of[0]] += 1;
        }
        assert!(sizes.iter().all(|size| (15..=45).contains(size)), "{sizes:?}");
        // What a task measures must never change between versions: shards of two would overlap.
        let known: Problem = "add_relu/f32/m64.n1024".parse().unwrap();
        assert!(parts[3].holds(&known));
    }

    #[test]
    fn parts_are_named_or_follow_from_the_task() {
        let none = |_: &str| None;
        assert_eq!(choice("2/8").unwrap().shard(none).unwrap().to_string(), "2/8");
        for wrong in ["0/8", "9/8", "8", "auto/0", "a/b", "1/10001", "-1/2", ""] {
            assert!(choice(wrong).is_err(), "{wrong}");
        }
        let of = |text: &str, variables: &[(&str, &str)]| {
            let value = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            choice(text).unwrap().shard(value).map(|shard| shard.to_string())
        };
        let array = [("SLURM_ARRAY_TASK_ID", "3"), ("SLURM_ARRAY_TASK_COUNT", "8")];
        assert_eq!(of("auto", &array).unwrap(), "4/8");
        let from_1 = [&array[..], &[("SLURM_ARRAY_TASK_MIN", "1")]].concat();
        assert_eq!(of("auto", &from_1).unwrap(), "3/8");
        let in_twos =
            [&array[..], &[("SLURM_ARRAY_TASK_MIN", "1"), ("SLURM_ARRAY_TASK_STEP", "2")]];
        assert_eq!(of("auto", &in_twos.concat()).unwrap(), "2/8");
        let job = [("JOB_COMPLETION_INDEX", "0")];
        assert_eq!(of("auto/4", &job).unwrap(), "1/4");
        for (text, variables, message) in [
            ("auto", &[][..], "neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX"),
            ("auto", &job[..], "name their number, as in --shard auto/8"),
            ("auto/3", &array[..], "parts 0 to 2, and this task is 3"),
            ("auto/3", &[("JOB_COMPLETION_INDEX", "one")], "JOB_COMPLETION_INDEX is \"one\""),
            ("auto", &[array[0], ("SLURM_ARRAY_TASK_COUNT", "")], "SLURM_ARRAY_TASK_COUNT is \"\""),
        ] {
            let error = of(text, variables).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
