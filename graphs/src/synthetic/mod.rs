//! ResNet-50, BERT-base and a Llama block as ONNX files, as exporters of PyTorch write them: with
//! open dimensions, without declared shapes, norms and GELU as many nodes. Weights have shapes and
//! no elements, so that the files are small.

mod bert;
mod llama;
mod model;
mod resnet;

pub use bert::bert_base;
pub use llama::llama_block;
pub use resnet::resnet50;
