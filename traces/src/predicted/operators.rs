//! Predictions and measurements of operators in one file: what `calibrate workload` writes.

use std::path::Path;

use csv::ReaderBuilder;
use serde::Deserialize;

use super::model_trace::ModelEvent;
use super::{Measured, ModelTrace, PredictedError, Process, file};

/// More places of operators than any model has: each becomes an event.
const MOST_TIMES: u64 = 1_000_000;

/// What a prediction rests on if it is known from measurements of this very operator.
const MEASURED: &str = "measured";

/// The operators of one way to run a model: what was predicted of them, and what was measured.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Operators {
    /// The way.
    pub name: String,
    /// What was predicted. An operator whose record the cost model has is a hit.
    pub model: ModelTrace,
    /// What was measured.
    pub measured: Measured,
}

/// An operator in all of its places together.
struct Operator {
    way: String,
    problem: String,
    times: u64,
    evidence: String,
    predicted_ms: Option<f64>,
    measured_ms: Option<f64>,
}

#[derive(Deserialize)]
struct JsonFile {
    operators: Vec<JsonOperator>,
}

#[derive(Deserialize)]
struct JsonOperator {
    way: String,
    problem: String,
    times: u64,
    evidence: String,
    predicted_ms: Option<JsonTime>,
    measured_ms: Option<f64>,
}

/// A time with or without its interval.
#[derive(Deserialize)]
#[serde(untagged)]
enum JsonTime {
    Interval { value: f64 },
    Value(f64),
}

/// A record of the CSV. It has more columns, which say nothing of an operator.
#[derive(Deserialize)]
struct CsvRow {
    row: String,
    way: String,
    problem: String,
    times: u64,
    evidence: String,
    predicted_ms: Option<f64>,
    measured_ms: Option<f64>,
}

impl Operators {
    /// Reads the JSON or the CSV that `calibrate workload` writes: the ways in the order of the file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is none of the two, or nothing was measured.
    pub fn load(path: impl AsRef<Path>) -> Result<Vec<Self>, PredictedError> {
        let path = path.as_ref();
        Self::from_bytes(&file::read(path)?, path)
    }

    /// The same from the bytes of a file.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn from_bytes(bytes: &[u8], path: impl AsRef<Path>) -> Result<Vec<Self>, PredictedError> {
        let path = path.as_ref();
        let failure = |reason| PredictedError::NotOperators { path: path.to_owned(), reason };
        let is_json = bytes.trim_ascii_start().starts_with(b"{");
        let all = if is_json { of_json(bytes) } else { of_csv(bytes) }.map_err(failure)?;
        if all.is_empty() {
            return Err(failure("it has no operators".to_owned()));
        }
        if all.iter().all(|one| one.measured_ms.is_none()) {
            let reason = "nothing was measured, as with --predict-only".to_owned();
            return Err(failure(reason));
        }
        for operator in &all {
            check(operator).map_err(|why| failure(format!("{}: {why}", operator.problem)))?;
        }
        let times = all.iter().map(|one| one.times).fold(0, u64::saturating_add);
        if times > MOST_TIMES {
            let reason = format!("its `times` are {times} together, more than {MOST_TIMES}");
            return Err(failure(reason));
        }
        let mut ways: Vec<Self> = Vec::new();
        for operator in all {
            let known = ways.iter().position(|way| way.name == operator.way);
            let at = known.unwrap_or_else(|| {
                ways.push(Self::none_of(&operator.way));
                ways.len() - 1
            });
            ways[at].add(&operator);
        }
        Ok(ways)
    }

    fn none_of(way: &str) -> Self {
        let process = Process { id: way.to_owned(), name: Some(way.to_owned()), events: 0 };
        Self {
            name: way.to_owned(),
            model: ModelTrace { process, warnings: Vec::new(), events: Vec::new() },
            measured: Measured::default(),
        }
    }

    fn add(&mut self, operator: &Operator) {
        let Operator { problem, times, evidence, predicted_ms, measured_ms, .. } = operator;
        let share = |ms: &f64| 1e3 * ms / *times as f64;
        for _ in 0..*times {
            if let Some(duration_us) = predicted_ms.as_ref().map(share) {
                self.model.process.events += 1;
                self.model.events.push(ModelEvent {
                    name: problem.clone(),
                    duration_us,
                    kernel_type: (evidence == MEASURED).then(|| problem.clone()),
                    split: None,
                });
            }
            if let Some(duration_us) = measured_ms.as_ref().map(share) {
                self.measured.rows += 1;
                self.measured.add(problem, duration_us);
            }
        }
    }
}

fn of_json(bytes: &[u8]) -> Result<Vec<Operator>, String> {
    let file: JsonFile = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let read = |one: JsonOperator| Operator {
        way: one.way,
        problem: one.problem,
        times: one.times,
        evidence: one.evidence,
        predicted_ms: one.predicted_ms.map(|time| match time {
            JsonTime::Interval { value } | JsonTime::Value(value) => value,
        }),
        measured_ms: one.measured_ms,
    };
    Ok(file.operators.into_iter().map(read).collect())
}

fn of_csv(bytes: &[u8]) -> Result<Vec<Operator>, String> {
    let mut reader = ReaderBuilder::new().from_reader(bytes);
    let mut operators = Vec::new();
    for row in reader.deserialize() {
        let row: CsvRow = row.map_err(|error| error.to_string())?;
        if row.row != "operator" {
            continue;
        }
        operators.push(Operator {
            way: row.way,
            problem: row.problem,
            times: row.times,
            evidence: row.evidence,
            predicted_ms: row.predicted_ms,
            measured_ms: row.measured_ms,
        });
    }
    Ok(operators)
}

fn check(operator: &Operator) -> Result<(), String> {
    let Operator { times, predicted_ms, measured_ms, .. } = operator;
    if !(1..=MOST_TIMES).contains(times) {
        return Err(format!("its `times` is {times}; it must be from 1 to {MOST_TIMES}"));
    }
    for (key, ms) in [("predicted_ms", predicted_ms), ("measured_ms", measured_ms)] {
        if let Some(ms) = ms.filter(|ms| !(ms.is_finite() && *ms >= 0.0)) {
            return Err(format!("its `{key}` is {ms}; a time is 0 or more"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Comparison, OpMap, Passes, Rules, Status};
    use super::*;

    const JSON: &str = r#"{"kind": "workload-report", "operators": [
        {"way": "unfused", "problem": "relu/f32/m4.n4", "times": 2, "evidence": "measured",
         "predicted_ms": {"value": 0.3, "low": 0.2, "high": 0.4}, "measured_ms": 0.2},
        {"way": "unfused", "problem": "add/f32/m4.n4", "times": 1, "evidence": "interpolated",
         "predicted_ms": 0.1, "measured_ms": 0.2},
        {"way": "best-partition", "problem": "add_relu/f32/m4.n4", "times": 1,
         "evidence": "unknown", "predicted_ms": null, "measured_ms": 0.25}]}"#;

    const CSV: &str = "row,way,problem,times,evidence,predicted_ms,measured_ms,verdict\r\n\
        way,unfused,,3,,0.4,0.4,\r\n\
        operator,unfused,relu/f32/m4.n4,2,measured,0.3,0.2,\r\n\
        operator,unfused,add/f32/m4.n4,1,interpolated,0.1,0.2,\r\n\
        operator,best-partition,add_relu/f32/m4.n4,1,unknown,,0.25,\r\n";

    fn compared(operators: &Operators) -> Comparison {
        let map = OpMap::default();
        Comparison::of(&operators.model, &map, &operators.measured, Passes::ONE, Rules::Own)
    }

    #[test]
    fn json_and_csv_say_the_same() {
        let json = Operators::from_bytes(JSON.as_bytes(), "a.json").unwrap();
        assert_eq!(Operators::from_bytes(CSV.as_bytes(), "a.csv").unwrap(), json);
        let [unfused, best] = &json[..] else { panic!("{json:?}") };
        assert_eq!([&unfused.name, &best.name], ["unfused", "best-partition"]);
        let comparison = compared(unfused);
        let find = |name: &str| comparison.rows.iter().find(|row| row.kernel_type == name).unwrap();
        let relu = find("relu/f32/m4.n4");
        assert_eq!((relu.status, relu.predicted_count, relu.measured_count), (Status::Hit, 2, 2.0));
        assert!(
            (relu.predicted_us - 300.0).abs() < 1e-9 && (relu.measured_us - 200.0).abs() < 1e-9
        );
        assert_eq!(find("add/f32/m4.n4").status, Status::Miss);
        // 100 us too much and 100 us too little of 400.
        assert!((comparison.totals.wmape_pct.unwrap() - 50.0).abs() < 1e-9);
        assert!(comparison.totals.error_us.abs() < 1e-9);
        assert_eq!(compared(best).rows[0].status, Status::Unmodelled);
    }

    #[test]
    fn other_files_say_what_is_wrong() {
        for (text, reason) in [
            ("{}", "missing field `operators`"),
            ("{\"operators\": []}", "it has no operators"),
            ("", "it has no operators"),
            ("a,b\n1,2\n", "missing field"),
            (&JSON.replace("\"measured_ms\": 0", "\"other\": 0"), "nothing was measured"),
            (&JSON.replace("\"times\": 2", "\"times\": 0"), "relu/f32/m4.n4: its `times` is 0"),
            (&JSON.replace("\"times\": 2", "\"times\": 9000000"), "its `times` is 9000000"),
            (
                &JSON.replace("\"times\": 2", "\"times\": 999999"),
                "its `times` are 1000001 together, more than 1000000",
            ),
            (&JSON.replace("0.25}", "-0.25}"), "its `measured_ms` is -0.25"),
            (&CSV.replace("0.25", "long"), "field 6"),
        ] {
            let error = Operators::from_bytes(text.as_bytes(), "x").unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(error.contains("calibrate workload"), "{error}");
        }
    }
}
