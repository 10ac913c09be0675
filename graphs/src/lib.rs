//! Reads a neural network and says which of its ops could be one kernel.
//!
//! A [`Graph`] is read from an ONNX file, or from the JSON that `docs/graph-json.md` describes and
//! an exporter writes from a `torch.fx` graph. [`Graph::segments`] gives the
//! dimensions that it leaves open a number, infers shapes, and recognises the ops of the vocabulary
//! of [`fusion_cost_model`]. A [`Segment`] is a run of such ops in which each result has one reader:
//! [`Segment::problem`] is what one kernel of some of them would compute, which a cost model is
//! asked about. What the vocabulary cannot express is an [`OpaqueNode`] with the reason.
//!
//! A model is read without its weights. Constants are laid out ahead of time, views of tensors cost
//! nothing, and what else a problem takes for granted is counted as an [`Assumption`].
//!
//! # How it goes
//!
//! `onnx` and `json` have a `builder` make a `graph` of `tensor`s; `shapes` says what is known of
//! each of them; `recognise` finds the ops, and `segments` the runs of them.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use model_graphs::{Dims, Graph, synthetic};
//!
//! let graph = Graph::from_onnx(synthetic::resnet50())?;
//! let found = graph.segments(&Dims::default().with("batch", 8))?;
//! let first = found.segments()[0].largest_kernels();
//! assert_eq!(
//!     first[0].to_string(),
//!     "conv_bn_relu_maxpool/f32/n8.c3.h224.w224.k64.r7.s7.stride2.pad3.pool3.pstride2.ppad1"
//! );
//! # Ok(())
//! # }
//! ```

#![warn(clippy::print_stderr, clippy::print_stdout)]
#![forbid(unsafe_code)]

mod attribute;
mod builder;
mod dims;
mod error;
mod graph;
mod json;
mod onnx;
mod read;
mod recognise;
mod segments;
mod shapes;
#[cfg(feature = "synthetic")]
pub mod synthetic;
mod tensor;

pub use dims::Dims;
pub use error::Error;
pub use graph::Graph;
pub use recognise::Assumption;
pub use segments::{Edge, OpaqueCount, OpaqueNode, Place, Segment, SegmentOp, Segments};
