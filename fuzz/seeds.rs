//! Writes the seeds of all targets: `cargo run --example seeds` in this folder.
//!
//! Traces of every model and every oddity for `loader`, their metadata for `metadata`, the examples
//! of the classifier's families for `classify`, and random choices for the targets that make
//! traces by themselves.

use std::error::Error;
use std::fs;
use std::path::Path;

use kernel_traces::classify::families;
use kernel_traces::synthetic::{self, Launching, Model, Oddity, Plan};

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let write = |target: &str, name: &str, bytes: &[u8]| -> Result<(), Box<dyn Error>> {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join(name), bytes)?)
    };
    let small = Plan { layers: 1, steps: 1, ..Plan::default() };
    let models = Model::ALL.map(|model| Plan { model, ..small.clone() });
    let launching = Launching::ALL.map(|launching| Plan { launching, ..small.clone() });
    let oddities = Oddity::ALL.map(|oddity| Plan { oddities: vec![oddity], ..small.clone() });
    let plans = models.into_iter().chain(launching).chain(oddities);
    for (number, plan) in plans.enumerate() {
        let (text, _) = synthetic::text(&plan)?;
        write("loader", &format!("trace{number}"), &text)?;
        let members = text
            .split(|&byte| byte == b'[')
            .nth(1)
            .map(|devices| [b"\"deviceProperties\": [", devices].concat());
        write("metadata", &format!("members{number}"), &members.unwrap_or_default())?;
    }
    for (number, (_, _, example)) in families().enumerate() {
        write("classify", &format!("name{number}"), example.as_bytes())?;
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for number in 0..64 {
        let byte = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        let bytes: Vec<u8> = (0..13 + number).map(byte).collect();
        for target in ["loader_mutated", "index"] {
            write(target, &format!("choices{number}"), &bytes)?;
        }
    }
    Ok(())
}
