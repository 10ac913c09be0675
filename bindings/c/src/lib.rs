//! The C interface of `fusion-cost-model`.
//!
//! `include/fusion_cost_model.h` is made of these sources by cbindgen, and its head says who owns
//! what. Handles are boxes, and pointers that may be null are `Option`s of references, so that most
//! calls need no `unsafe` here: what is left of it reads the strings ([`text`]) and the arrays of
//! callers. Numbers stand in place of enums, because a number that no enum has would be undefined
//! behaviour ([`constants`]). A panic becomes an error ([`error`]).

pub mod constants;
pub mod coverage;
pub mod decision;
pub mod error;
pub mod estimate;
pub mod model;
pub mod on_target;
pub mod partition;
pub mod problem;
pub mod target;
pub mod text;
pub mod version;
