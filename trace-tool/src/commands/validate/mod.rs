//! `calibrate trace validate`: what a performance model predicts, against what was measured.
//!
//! `scenarios` reads what is to be compared; each scenario is compared by itself, so that one that
//! fails does not lose the others.

mod scenarios;

use std::io::Write;
use std::path::Path;

use cli_support::exit;
use cli_support::input::expect;
use cli_support::output::{Destination, Target};
use cli_support::say;
use kernel_traces::predicted::{
    Comparison, FailedScenario, LimitVerdict, Measured, ModelTrace, OpMap, Operators, Passes,
    PredictedError, Rules, ScenarioFiles, ScenarioResult, Validation,
};

use super::write_json;
use crate::cli::{TraceValidateArgs, ValidateFormat};
use crate::report;
use scenarios::{PassesFrom, Scenario};

/// Compares all scenarios.
pub(super) fn validate(args: &TraceValidateArgs) -> anyhow::Result<u8> {
    let rules = args.rules();
    let target = args.out.target()?;
    let is_list = args.scenarios.is_some() || args.operators.is_some();
    let outcomes: Vec<_> = match &args.operators {
        Some(path) => {
            let of_ways = compare_operators(path, args.max_wmape)?;
            of_ways.into_iter().inspect(|outcome| tell(outcome, is_list)).collect()
        }
        None => {
            let outcomes = scenarios::of(args)?;
            let outcomes = outcomes.iter().map(|scenario| compare(scenario, rules));
            outcomes.inspect(|outcome| tell(outcome, is_list)).collect()
        }
    };
    let validation = Validation::new(outcomes);
    if !is_list && validation.failed().next().is_some() {
        return Ok(exit::FAILURE);
    }
    exit::if_read(write(&validation, args, rules, target))?;
    Ok(exit_code(&validation))
}

fn write(
    validation: &Validation,
    args: &TraceValidateArgs,
    rules: Rules,
    target: Option<Target>,
) -> anyhow::Result<()> {
    let mut out = match (args.format(), rules) {
        (ValidateFormat::Csv, Rules::Own) => args.out.for_csv(target)?,
        _ => Destination::new(target)?,
    };
    match (args.format(), rules) {
        (ValidateFormat::Text, Rules::Own) => {
            out.write_text(&report::trace_validation(validation, args.top))?;
        }
        (ValidateFormat::Text, Rules::Original) => {
            out.write_all(report::trace_validation_original(validation).as_bytes())?;
        }
        (ValidateFormat::Csv, Rules::Own) => {
            out.write_all(&report::trace_validation_csv(validation)?)?;
        }
        (ValidateFormat::Csv, Rules::Original) => {
            out.write_all(&report::trace_validation_original_csv(validation)?)?;
        }
        (ValidateFormat::Json, Rules::Own) => write_json(&mut out, validation)?,
        (ValidateFormat::Json, Rules::Original) => {
            write_json(&mut out, &validation.original())?;
        }
    }
    out.finish()
}

/// Compares each way of a file of operators.
fn compare_operators(
    path: &Path,
    max_wmape: Option<f64>,
) -> anyhow::Result<Vec<Result<ScenarioResult, FailedScenario>>> {
    let files = ScenarioFiles::new(path.to_owned(), path.to_owned(), None);
    let result = |operators: Operators| {
        let Operators { name, model, measured, .. } = operators;
        let map = OpMap::default();
        let comparison = Comparison::of(&model, &map, &measured, Passes::ONE, Rules::Own);
        let rows = measured.rows;
        Ok(ScenarioResult::new(name, files.clone(), rows, comparison, max_wmape))
    };
    Ok(Operators::load(expect(path))?.into_iter().map(result).collect())
}

fn compare(scenario: &Scenario, rules: Rules) -> Result<ScenarioResult, FailedScenario> {
    let ScenarioFiles { predicted, measured, op_map, .. } = &scenario.files;
    let passes = match &scenario.passes {
        PassesFrom::File(path) => Some(path),
        PassesFrom::Number(_) => None,
    };
    [predicted, measured].into_iter().chain(op_map).chain(passes).for_each(|path| _ = expect(path));
    let model = ModelTrace::load(&scenario.files.predicted, scenario.process.as_deref());
    let measured = Measured::load(&scenario.files.measured, scenario.by, rules);
    let map = match &scenario.files.op_map {
        Some(path) => OpMap::load(path, rules),
        None => Ok(OpMap::default()),
    };
    let passes = match &scenario.passes {
        PassesFrom::Number(passes) => Ok(*passes),
        PassesFrom::File(path) => Passes::load(path, rules),
    };
    match (model, measured, map, passes) {
        (Ok(model), Ok(measured), Ok(map), Ok(passes)) => {
            let comparison = Comparison::of(&model, &map, &measured, passes, rules);
            let name = scenario.name.clone();
            let files = scenario.files.clone();
            Ok(ScenarioResult::new(name, files, measured.rows, comparison, scenario.max_wmape))
        }
        // Everything that is wrong, not only the first.
        (model, measured, map, passes) => {
            let errors = [model.err(), measured.err(), map.err(), passes.err()];
            let errors = errors.iter().flatten().map(PredictedError::to_string).collect();
            Err(FailedScenario::new(scenario.name.clone(), errors))
        }
    }
}

/// Reports a scenario on stderr; with its name if it is one of several.
fn tell(outcome: &Result<ScenarioResult, FailedScenario>, is_list: bool) {
    let of = |name: &str| if is_list { format!("{name}: ") } else { String::new() };
    let result = match outcome {
        Ok(result) => result,
        Err(failed) => {
            for error in &failed.errors {
                say!("error: {}{error}", of(&failed.name));
            }
            return;
        }
    };
    let of = of(&result.name);
    for warning in &result.comparison.warnings {
        say!("warning: {}: {of}{warning}; {}", warning.code(), warning.advice());
    }
    match result.verdict {
        Some(LimitVerdict::Exceeded) => say!("regression: {of}{}", report::excess(result)),
        Some(LimitVerdict::Unjudged) => {
            say!("error: {of}nothing was measured, so there is no wMAPE to judge");
        }
        _ => {}
    }
}

fn exit_code(validation: &Validation) -> u8 {
    let is = |verdict| validation.results().any(|result| result.verdict == Some(verdict));
    if validation.failed().next().is_some() || is(LimitVerdict::Unjudged) {
        exit::FAILURE
    } else if is(LimitVerdict::Exceeded) {
        exit::FOUND
    } else {
        exit::DONE
    }
}
