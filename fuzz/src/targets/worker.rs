//! The worker protocol: what a caller reads of a worker, and a worker of its caller.

use calibrate::measure::Procedure;
use calibrate::plan::Subject;
use calibrate::worker::{CeilingsReport, FoundGpu, MeasureAnswer, MeasureTask, PlanTask};
use fused_kernels::worker::wire::{self, Message};
use fusion_cost_model::CacheState;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::journal::process;
use crate::Target;

/// Whatever comes over a pipe is an answer, a question, or an error; and what can be read is
/// written as it was.
pub(super) const WORKER: Target = Target { name: "worker", seeds, run };

fn run(mut bytes: &[u8]) -> String {
    let input = &mut bytes;
    // The caller skips what comes before the greeting; a worker is not greeted.
    let greeting = match input.first() {
        Some(b'{') => None,
        _ => Some(wire::read_greeting(input)),
    };
    if let Some(Err(error)) = greeting {
        return format!("{error:?}");
    }
    let mut said = String::new();
    loop {
        match wire::read(input) {
            Ok(Some(body)) => said.push_str(&message(&body)),
            Ok(None) => return said,
            Err(error) => return said + &error.to_string(),
        }
    }
}

fn message(body: &[u8]) -> String {
    let message = match Message::of(body) {
        Ok(message) => message,
        Err(reason) => return reason,
    };
    [
        content::<MeasureTask>(&message),
        content::<PlanTask>(&message),
        content::<Result<MeasureAnswer, String>>(&message),
        content::<Result<Option<CeilingsReport>, String>>(&message),
        content::<Result<Vec<Result<u64, String>>, String>>(&message),
        content::<Result<FoundGpu, String>>(&message),
    ]
    .concat()
}

fn content<T: Serialize + DeserializeOwned>(message: &Message) -> String {
    match message.content::<T>() {
        Ok(content) => {
            let body = wire::body(&message.name, &content).expect("what is read can be written");
            let again = Message::of(&body).and_then(|message| message.content::<T>());
            let again = again.expect("what is written can be read");
            assert_eq!(wire::body(&message.name, &again), Ok(body));
            String::new()
        }
        Err(reason) => reason,
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let problem = "add_relu/f32/m4.n4".parse().unwrap();
    let subject = Subject::fusion(problem);
    let task = MeasureTask {
        subject,
        cache: CacheState::Warm,
        procedure: Procedure::QUICK,
        input_seed: 1,
        process_seed: 2,
        reference_budget: 1000,
        proved: None,
        ladder: Default::default(),
        planted: None,
    };
    let plan = PlanTask { subjects: vec![subject], cache: CacheState::Cold };
    let measured: Result<_, String> = Ok(MeasureAnswer::Measured(Box::new(process())));
    let none: Result<MeasureAnswer, String> = Ok(MeasureAnswer::NoKernels);
    let refused: Result<MeasureAnswer, &str> = Err("it does not know the question");
    let bodies = [
        wire::body("measure", &task),
        wire::body("plan", &plan),
        wire::body("measure", &measured),
        wire::body("measure", &none),
        wire::body("measure", &refused),
    ];
    let mut all = greeted();
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for body in bodies {
        let mut one = greeted();
        wire::write(&mut one, body.as_ref().unwrap()).unwrap();
        wire::write(&mut all, &body.unwrap()).unwrap();
        seeds.push(one);
    }
    seeds.push(all);
    seeds
}

fn greeted() -> Vec<u8> {
    let mut bytes = b"a library prints\n".to_vec();
    wire::write_greeting(&mut bytes).unwrap();
    bytes
}
