//! Prints the segments of a model, each as its largest kernels, and what is opaque.
//!
//! Run it with `cargo run -p model-graphs --example segments -- MODEL [batch=8]...`.

use std::error::Error;

use model_graphs::{Dims, Graph};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().ok_or("name an ONNX file, or the JSON of a graph")?;
    let mut dims = Dims::default();
    for text in arguments {
        dims.set(&text)?;
    }
    let found = Graph::load(model)?.segments(&dims)?;
    for segment in found.segments() {
        let kernels: Vec<String> =
            segment.largest_kernels().iter().map(ToString::to_string).collect();
        println!("{}", kernels.join("\n  then "));
    }
    println!("{} edges between {} segments", found.edges().len(), found.segments().len());
    for count in found.opaque_counts() {
        println!("opaque: {count}");
    }
    for (assumption, count) in found.assumptions() {
        println!("assumed {count} times: {assumption}");
    }
    println!(
        "{} views; {} nodes computed ahead; {} that no output needs",
        found.views(),
        found.computed_ahead(),
        found.unused()
    );
    Ok(())
}
