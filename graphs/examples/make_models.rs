//! Writes ResNet-50, BERT-base and a Llama block as ONNX files, without weights.
//!
//! Run it with `cargo run -p model-graphs --features synthetic --example make_models -- FOLDER`.

use std::error::Error;
use std::path::PathBuf;

use model_graphs::synthetic::{bert_base, llama_block, resnet50};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("name a folder to write to")?);
    std::fs::create_dir_all(&folder)?;
    let models =
        [("resnet50", resnet50()), ("bert-base", bert_base()), ("llama-block", llama_block())];
    for (name, bytes) in models {
        let path = folder.join(format!("{name}.onnx"));
        std::fs::write(&path, &bytes)?;
        println!("{}: {} bytes", path.display(), bytes.len());
    }
    Ok(())
}
