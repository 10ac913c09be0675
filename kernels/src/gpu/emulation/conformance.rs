//! Every pattern and chain, both variants, on emulated devices.

use fusion_cost_model::{DType, Form, Problem};

use super::check_all;

use crate::gpu::problems;

#[test]
fn trial_suite() {
    let forms = std::env::var("FORMS").unwrap();
    let dtypes = std::env::var("DTYPES").unwrap_or("f32,bf16,f16".into());
    let arch = std::env::var("ARCH").unwrap_or("sm_80".into());
    let forms: Vec<&str> = forms.split(',').collect();
    let problems: Vec<Problem> = dtypes
        .split(',')
        .flat_map(|d| problems::problems(d.parse::<DType>().unwrap()))
        .filter(|p| forms.contains(&format!("{:?}", p.chain().form()).as_str()))
        .collect();
    let start = std::time::Instant::now();
    let n = problems.len();
    let r = std::panic::catch_unwind(|| check_all(&problems, &arch));
    eprintln!("{n} problems {:?}", start.elapsed());
    if let Err(e) = r {
        std::panic::resume_unwind(e)
    }
}
