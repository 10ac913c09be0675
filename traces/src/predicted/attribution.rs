//! Which time each type of kernel is predicted to take.

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::Value;

use super::literal::{LiteralError, sub_kernel_durations};
use super::model_trace::{ModelEvent, ModelTrace};
use super::op_map::{OpMap, short};
use super::{InputWarning, Rules};

/// The collective that operators with `all_reduce` in their name run, whether they say so or not.
const ALL_REDUCE: &str = "hcom_allReduce_";

/// What a model predicts for each type of kernel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attribution {
    /// The types, in the order in which they first occur.
    pub kernels: Vec<PredictedKernel>,
    /// How many events were left out because their operator costs nothing.
    pub zero_cost: u64,
    /// What is to be known of it.
    pub warnings: Vec<InputWarning>,
    ids: FxHashMap<String, usize>,
}

/// What a model predicts for a type of kernel.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PredictedKernel {
    /// The type.
    pub kernel_type: String,
    /// The operators that run it, in the order in which they first occur.
    pub operators: Vec<String>,
    /// The time, in the order in which the original adds it up.
    pub total_us: f64,
    /// The part of it that the model knows from measurements.
    pub hit_us: f64,
    /// The part of it that the model only estimates.
    pub miss_us: f64,
    /// How many kernels the model knows from measurements.
    pub hits: u64,
    /// How many it only estimates.
    pub misses: u64,
}

/// Whether the model knows a kernel's time from measurements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Hit,
    Miss,
}

impl Attribution {
    /// Attributes the time of a model's operators.
    #[must_use]
    pub fn of(model: &ModelTrace, map: &OpMap, rules: Rules) -> Self {
        let mut all = Self::default();
        for event in &model.events {
            if map.is_zero_cost(&event.name) {
                all.zero_cost += 1;
            } else if let Some(kernels) = kernels(event, rules) {
                all.hit(event, &kernels, rules);
            } else {
                let own = match rules {
                    Rules::Own => short(&event.name),
                    Rules::Original => event.name.clone(),
                };
                let kernel = map.kernel_type(&event.name).map_or(own, str::to_owned);
                all.add(&kernel, event, Found::Miss, event.duration_us);
            }
        }
        all
    }

    fn hit(&mut self, event: &ModelEvent, kernels: &[String], rules: Rules) {
        match split(event, rules) {
            Ok(split) if !split.is_empty() => {
                for (kernel, duration_us) in split {
                    self.add(&kernel, event, Found::Hit, duration_us);
                }
                return;
            }
            Ok(_) => {}
            Err(reason) => self.warn_of_split(event, reason),
        }
        let share = event.duration_us / kernels.len() as f64;
        for kernel in kernels {
            self.add(kernel, event, Found::Hit, share);
        }
        let runs_all_reduce = event.name.to_lowercase().contains("all_reduce");
        if runs_all_reduce && !kernels.iter().any(|kernel| kernel == ALL_REDUCE) {
            self.add(ALL_REDUCE, event, Found::Hit, 0.0);
        }
    }

    fn add(&mut self, kernel: &str, event: &ModelEvent, found: Found, duration_us: f64) {
        let id = self.ids.get(kernel).copied().unwrap_or_else(|| {
            let new = PredictedKernel { kernel_type: kernel.to_owned(), ..Default::default() };
            self.kernels.push(new);
            self.ids.insert(kernel.to_owned(), self.kernels.len() - 1);
            self.kernels.len() - 1
        });
        let kernel = &mut self.kernels[id];
        kernel.total_us += duration_us;
        match found {
            Found::Hit => {
                kernel.hits += 1;
                kernel.hit_us += duration_us;
            }
            Found::Miss => {
                kernel.misses += 1;
                kernel.miss_us += duration_us;
            }
        }
        let operator = short(&event.name);
        if !kernel.operators.contains(&operator) {
            kernel.operators.push(operator);
        }
    }

    /// One warning for each operator.
    fn warn_of_split(&mut self, event: &ModelEvent, why: String) {
        for warning in &mut self.warnings {
            if let InputWarning::BadSplit { operator, count, .. } = warning
                && *operator == event.name
            {
                *count += 1;
                return;
            }
        }
        let operator = event.name.clone();
        self.warnings.push(InputWarning::BadSplit { operator, count: 1, reason: why });
    }
}

/// The kernels of an operator whose time is known from measurements.
fn kernels(event: &ModelEvent, rules: Rules) -> Option<Vec<String>> {
    let text = event.kernel_type.as_deref().filter(|text| !text.is_empty() && *text != "?")?;
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let kernels: Vec<String> = names.map(str::to_owned).collect();
    // The original loses the time of an operator whose list is nothing but commas.
    (!kernels.is_empty() || rules == Rules::Original).then_some(kernels)
}

/// How an operator's time is split over its kernels; empty if its event does not say.
fn split(event: &ModelEvent, rules: Rules) -> Result<Vec<(String, f64)>, String> {
    let pairs = match &event.split {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) if text.is_empty() => return Ok(Vec::new()),
        Some(Value::String(text)) => {
            sub_kernel_durations(text).map_err(|error| error.to_string())?
        }
        // Not as Python prints it, but as JSON has it.
        Some(list) if rules == Rules::Own => {
            serde_json::from_value(list.clone()).map_err(|_| LiteralError::NotPairs.to_string())?
        }
        Some(_) => return Err(LiteralError::NotPairs.to_string()),
    };
    let is_bad = |(kernel, duration): &(String, f64)| kernel.is_empty() || *duration < 0.0;
    if rules == Rules::Own
        && let Some((kernel, duration)) = pairs.iter().find(|pair| is_bad(pair))
    {
        return Err(format!("`{kernel}` takes {duration} us"));
    }
    Ok(pairs)
}
