//! What a trace says of a model is a set of sizes that can be measured.

use std::path::Path;

use calibrate::profiles::ShapeSet;
use fusion_cost_model::DType;
use kernel_traces::rates::problems::ModelProblems;
use kernel_traces::{Options, Trace};

#[test]
fn the_set_of_a_trace_is_read_and_gives_its_problems() {
    let op = |id: u32, name: &str, dims: &str| {
        format!(
            "{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{name}\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \
             \"dur\": 5, \"args\": {{\"External id\": {id}, \"Input Dims\": {dims}, \"Input type\": \
             [\"float\", \"float\", \"float\"]}}}}, {{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \
             \"pid\": 0, \"tid\": 7, \"ts\": {id}, \"dur\": 1, \"args\": {{\"External id\": {id}}}}}"
        )
    };
    let ops = [
        op(1, "aten::mm", "[[16, 32], [32, 64]]"),
        op(2, "aten::addmm", "[[64], [16, 32], [32, 64]]"),
        op(3, "aten::conv2d", "[[1, 8, 14, 14], [16, 8, 3, 3], [16]]"),
        op(4, "aten::_scaled_dot_product_flash_attention", "[[1, 8, 128, 64], [1, 8, 256, 64]]"),
    ];
    let text = format!("[{}]", ops.join(", "));
    let trace = Trace::from_json(text.as_bytes(), &Options::default()).unwrap();
    let found = ModelProblems::of(&trace);
    assert_eq!(found.problems.len(), 4, "{found:?}");
    let text = trace_tool::report::trace_problems(&found, Path::new("A \"b\"\n.json"), 60);
    let set = ShapeSet::from_toml(&text).unwrap();
    let mut problems: Vec<String> = set
        .all_chains()
        .iter()
        .flat_map(|chain| set.problems(chain, DType::F32))
        .map(|problem| problem.to_string())
        .collect();
    problems.sort();
    let mut expected: Vec<String> = found.problems.into_iter().map(|one| one.problem).collect();
    expected.sort();
    assert_eq!(problems, expected);
}
